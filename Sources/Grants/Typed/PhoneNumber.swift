import CPhoneNumber

/// A phone number that messages can be sent to, in E.164 form.
///
/// libphonenumber judges it (docs/decisions/0034). Its table is older than some numbers, so "not valid" is no reason to
/// refuse one, and neither is "too long" up to fifteen digits.
public struct PhoneNumber: Sendable, Hashable {
    /// `+` and 7 to 15 digits: the look-up key, as `address_key` of an address is.
    public let text: String
    /// ISO 3166 code of the country it counts to; `001` for a number of no country.
    public let region: String

    /// The longest text that is looked at, in bytes.
    private static let maximumLength = 128

    /// Reads E.164 alone, as apps send it: no blanks, no national form.
    public init?(e164 text: String) {
        guard Self.isE164(text) else { return nil }
        self.init(typed: text, defaultRegion: nil)
    }

    /// Reads what people type on a page. - Parameter defaultRegion: the country of numbers without a country code.
    public init?(typed: String, defaultRegion: String?) {
        guard (1...Self.maximumLength).contains(typed.utf8.count), !typed.utf8.contains(0) else { return nil }
        var number = phone_number()
        // Contacts and dialogs put marks of direction around and between the digits.
        var typed = String(String.UnicodeScalarView(typed.unicodeScalars.filter { !$0.isInvisible }))
        guard !typed.isEmpty else { return nil }
        let isNumber = typed.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { text in
                phone_number_read(text.baseAddress, text.count, defaultRegion, &number) == 1
            }
        }
        guard isNumber else { return nil }
        text = Self.string(&number.e164)
        region = Self.string(&number.region)
        guard Self.isE164(text) else { return nil }
    }

    /// Whether a key is a phone number's: an address has no `+` without an `@`.
    static func isKey(_ key: String) -> Bool { isE164(key) }

    private static func isE164(_ text: String) -> Bool {
        let digits = text.utf8.dropFirst()
        return text.utf8.first == UInt8(ascii: "+") && (7...15).contains(digits.count)
            && digits.first != UInt8(ascii: "0") && digits.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// A C array of characters that ends in NUL.
    private static func string<Characters>(_ characters: inout Characters) -> String {
        withUnsafeBytes(of: &characters) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
