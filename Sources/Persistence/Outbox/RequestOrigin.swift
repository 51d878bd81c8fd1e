/// What a link's mail and page say about the request that caused the link, so that its owner can tell a stranger's from
/// their own.
public struct RequestOrigin: Codable, Sendable, Equatable {
    /// The name shown for the requester: the App's display name, else the client's, else the realm's.
    public let application: String
    /// When it was asked for, in seconds since 1970.
    public let time: Double
    /// Where it was asked for from, shortened; `nil` when unknown. The whole address is not kept in mails.
    public let address: String?

    /// - Parameter source: the whole address, as limits count it.
    public init(application: String, time: Double, source: String?) {
        self.application = application
        self.time = time
        address = source.flatMap(Self.shortened)
    }

    /// `198.51.x.x` of an IPv4 address, the first 32 bits of an IPv6 address, `nil` of any other text.
    static func shortened(_ source: String) -> String? {
        let address = source.prefix { $0 != "/" }
        if address.contains(":") {
            let groups = address.split(separator: ":", omittingEmptySubsequences: false)
            guard groups.count >= 3, groups.prefix(2).allSatisfy({ $0.utf8.count <= 4 && Int($0, radix: 16) != nil })
            else { return nil }
            return "\(groups[0]):\(groups[1]):x:x:x:x:x:x"
        }
        let groups = address.split(separator: ".", omittingEmptySubsequences: false)
        guard groups.count == 4, groups.allSatisfy({ UInt8($0) != nil }) else { return nil }
        return "\(groups[0]).\(groups[1]).x.x"
    }

    /// `22 November 2026, 14:03 UTC`.
    public var timeText: String {
        let seconds = time.isFinite ? Int(min(max(time, 0), 253_402_300_799)) : 0
        let (year, month, day) = Self.date(ofDay: seconds / 86_400)
        let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(day) \(Self.months[month - 1]) \(year), \(two(seconds / 3600 % 24)):\(two(seconds / 60 % 60)) UTC"
    }

    /// `2026-11-22 14:03 UTC`: the same in every language.
    public var shortTimeText: String {
        let seconds = time.isFinite ? Int(min(max(time, 0), 253_402_300_799)) : 0
        let (year, month, day) = Self.date(ofDay: seconds / 86_400)
        let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        return "\(year)-\(two(month))-\(two(day)) \(two(seconds / 3600 % 24)):\(two(seconds / 60 % 60)) UTC"
    }

    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ]

    /// The date of a day counted from 1 January 1970.
    private static func date(ofDay day: Int) -> (year: Int, month: Int, day: Int) {
        var rest = day
        var year = 1970
        while rest >= daysIn(year: year) {
            rest -= daysIn(year: year)
            year += 1
        }
        var month = 1
        while rest >= daysIn(month: month, of: year) {
            rest -= daysIn(month: month, of: year)
            month += 1
        }
        return (year, month, rest + 1)
    }

    private static func daysIn(year: Int) -> Int { isLeap(year) ? 366 : 365 }

    private static func daysIn(month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func isLeap(_ year: Int) -> Bool {
        year.isMultiple(of: 4) && !year.isMultiple(of: 100) || year.isMultiple(of: 400)
    }
}

extension RequestOrigin {
    /// How a request is described by the functions that decide about one.
    static func columns(_ columns: inout Columns) -> RowDecoder<Self?> {
        let application = columns("asked_by", String?.self)
        let origin = columns.record { (row) throws(StoreError) in
            RequestOrigin(application: try row("asked_by"), time: try row("asked_at"), source: try row("source"))
        }
        return { (row) throws(StoreError) in try row[application] == nil ? nil : origin(row) }
    }
}
