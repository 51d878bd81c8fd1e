import Glibc
import Synchronization

/// The `Date` header (RFC 9110 §5.6.7), made once a second.
enum HTTPDate {
    private static let cache = Mutex((second: 0, text: ""))

    static var now: String {
        let second = time(nil)
        return cache.withLock { cache in
            if cache.second != second { cache = (second, text(of: second)) }
            return cache.text
        }
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(of second: Int) -> String {
        var second = second
        var parts = tm()
        gmtime_r(&second, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let two = { (value: Int32) in value < 10 ? "0\(value)" : "\(value)" }
        let date =
            "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
        return "\(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
