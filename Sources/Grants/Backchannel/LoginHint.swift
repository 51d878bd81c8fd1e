import Persistence

/// Whom a request for approval means: an e-mail address, an E.164 number or a `sub` (CIBA Core 1.0 §7.1).
struct LoginHint {
    /// As given.
    let text: String
    /// What limits count: one spelling.
    let key: String

    /// `nil` for any other form. Nothing about an account is looked up.
    init?(_ text: String) {
        if let address = EmailAddress(text), address.text == text {
            key = address.key
        } else if text.utf8.first == UInt8(ascii: "+"), let number = PhoneNumber(e164: text) {
            key = number.text
        } else if let user = UUIDValue(text), user.description == text {
            key = text
        } else {
            return nil
        }
        self.text = text
    }
}

/// What the device shows beside a request (CIBA Core 1.0 §7.1): it can neither break a line nor hide or turn text.
enum BindingMessage {
    private static let maximumCharacters = 64

    static func isValid(_ text: String) -> Bool {
        text.unicodeScalars.count <= maximumCharacters
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
                // Others of this category join emoji.
                case .format: !turnsText(scalar)
                default: true
                }
            }
    }

    /// Unicode Standard Annex 9, table 4.
    private static func turnsText(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
