/// Dates as mails write them.
enum MailDate {
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// `Thu, 01 Jan 1970 00:00:00 +0000` (RFC 5322 §3.3) for seconds since then, clamped to the years 1970 to 9999.
    static func rfc5322(secondsSinceEpoch: Double) -> String {
        let seconds = secondsSinceEpoch.isFinite ? Int(min(max(secondsSinceEpoch, 0), 253_402_300_799)) : 0
        let days = seconds / 86_400
        let time = seconds % 86_400

        // Proleptic Gregorian calendar counted from 1 March 0000: leap days fall at the end of a year.
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)

        let clock = [time / 3600, time / 60 % 60, time % 60].map(twoDigits).joined(separator: ":")
        return "\(weekdays[days % 7]), \(twoDigits(day)) \(months[month - 1]) \(year) \(clock) +0000"
    }

    private static func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
