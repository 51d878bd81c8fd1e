import Persistence

/// Whom a request for approval means: an e-mail address, an E.164 number or a `sub` (CIBA Core 1.0 §7.1).
struct LoginHint {
    /// Read as on a page: without what copying brings around it.
    let text: String
    /// What limits count: one spelling.
    let key: String

    /// `nil` for any other form. Nothing about an account is looked up.
    init?(_ given: String) {
        if let address = EmailAddress(given) {
            (text, key) = (address.text, address.key)
        } else if let number = PhoneNumber(e164: given) {
            (text, key) = (number.text, number.text)
        } else if let user = UUIDValue(given), user.description == given {
            (text, key) = (given, given)
        } else {
            return nil
        }
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
