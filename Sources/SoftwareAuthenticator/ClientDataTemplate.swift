import Encoding
import WebAuthnVerify

/// `clientDataJSON` before it is written: every member can be changed or left out.
public struct ClientDataTemplate: Sendable {
    /// `type`; nil leaves the member out. So for every optional here.
    public var type: String?
    /// `challenge`, the text as written.
    public var challenge: String?
    /// `origin`.
    public var origin: String?
    /// `crossOrigin`.
    public var crossOrigin: Bool?
    /// `topOrigin`.
    public var topOrigin: String?
    /// Raw JSON appended inside the object, beginning with a comma.
    public var suffix = ""
    /// Bytes before the document, for example a byte order mark.
    public var prefix: [UInt8] = []

    /// What an honest client writes.
    public init(type: String, challenge: [UInt8], origin: String, crossOrigin: Bool? = false) {
        self.type = type
        self.challenge = Base64.urlEncode(challenge)
        self.origin = origin
        self.crossOrigin = crossOrigin
    }

    /// The bytes.
    public func encoded() -> [UInt8] {
        var members: [String] = []
        if let type { members.append("\"type\":\(Self.quoted(type))") }
        if let challenge { members.append("\"challenge\":\(Self.quoted(challenge))") }
        if let origin { members.append("\"origin\":\(Self.quoted(origin))") }
        if let crossOrigin { members.append("\"crossOrigin\":\(crossOrigin)") }
        if let topOrigin { members.append("\"topOrigin\":\(Self.quoted(topOrigin))") }
        return prefix + Array("{\(members.joined(separator: ","))\(suffix)}".utf8)
    }

    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\u{0}"..<" ":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
