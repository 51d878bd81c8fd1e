/// A phone number as answers show it.
enum MaskedPhone {
    /// The beginning and the last four digits. - Parameter phone: E.164.
    static func text(_ phone: String) -> String {
        let shown = phone.hasPrefix("+1") ? 2 : 3
        return phone.prefix(shown) + String(repeating: "•", count: max(phone.count - shown - 4, 0)) + phone.suffix(4)
    }
}
