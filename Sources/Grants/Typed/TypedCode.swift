/// A code or a number as a person typed or pasted it: the one way to read codes of messages, TOTP and recovery codes,
/// and the two digits of a link.
///
/// Keyboards write the digits of many scripts, messengers and authenticators show codes in groups, and copying brings
/// marks along that cannot be seen. So decimal digits of every script become ASCII; white space, hyphens and code
/// points that have no appearance (Unicode: `Default_Ignorable_Code_Point`) vanish. What is left is compared as it is.
public struct TypedCode: Sendable, Equatable {
    /// The code. Text that is too long to be one is read as the empty text, which no code is equal to.
    public let text: String

    /// The longest text that is looked at, in bytes: twelve characters of four bytes, each among some marks.
    public static let maximumBytes = 256

    /// Reads what was typed.
    public init(_ typed: String) {
        guard typed.utf8.count <= Self.maximumBytes else {
            text = ""
            return
        }
        var scalars = String.UnicodeScalarView()
        for scalar in typed.unicodeScalars where !scalar.separatesDigits {
            scalars.append(scalar.decimalDigit ?? scalar)
        }
        text = String(scalars)
    }

    /// The code, if it is a number of so many digits.
    public func number(digits count: Int) -> String? {
        text.utf8.count == count && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? text : nil
    }
}

extension Unicode.Scalar {
    /// What people, messages and copying put between and around digits.
    fileprivate var separatesDigits: Bool { isBlank || properties.isDash }

    /// The ASCII digit of a decimal digit of any script (general category Nd); `nil` for anything else.
    fileprivate var decimalDigit: Unicode.Scalar? {
        guard properties.generalCategory == .decimalNumber, let value = properties.numericValue,
            let digit = UInt8(exactly: value), digit < 10
        else { return nil }
        return Unicode.Scalar(UInt8(ascii: "0") + digit)
    }
}
