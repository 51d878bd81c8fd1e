extension Texts {
    /// An instant to the minute, as people who read the language write it, with the name of its zone: UTC, since no
    /// mail and no page knows the reader's.
    /// - Parameter secondsSinceEpoch: since 1970.
    public func time(_ secondsSinceEpoch: Double) -> String {
        let seconds = secondsSinceEpoch.isFinite ? Int(min(max(secondsSinceEpoch, 0), 253_402_300_799)) : 0
        let (year, month, day) = Self.date(ofDay: seconds / 86_400)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let names = self["time-months"].split(separator: ",").map { String($0.drop { $0 == " " }) }
        return filling([
            "day": "\(day)", "month": names.count == 12 ? names[month - 1] : two(month), "year": "\(year)",
            "time": "\(two(seconds / 3600 % 24)):\(two(seconds / 60 % 60))", "zone": "UTC",
        ])["time-form"]
    }

    /// The date of a day counted from 1 January 1970. Years are counted from 1 March 0000, so that a leap day is the
    /// last day of its year.
    private static func date(ofDay day: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = day + 719_468
        let (era, ofEra) = (shifted / 146_097, shifted % 146_097)
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * ofYear + 2) / 153
        let month = march < 10 ? march + 3 : march - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * march + 2) / 5 + 1)
    }
}
