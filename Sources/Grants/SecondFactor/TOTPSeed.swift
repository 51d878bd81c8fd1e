import Encoding
import Persistence

/// The secret an authenticator app and this server share: 160 random bits (RFC 4226 §4, R6).
struct TOTPSeed: Sendable, Equatable, Redacted {
    static let count = 20
    let bytes: [UInt8]

    static func random() -> TOTPSeed {
        TOTPSeed(bytes: randomBytes(count))
    }

    /// As people type it into an app that cannot scan.
    var base32: String { Base32.encode(bytes) }

    /// The Key URI that apps read from a QR code (github.com/google/google-authenticator/wiki/Key-Uri-Format). The
    /// algorithm, digits and period are the defaults, and said because some apps want them.
    func uri(issuer: String, account: String) -> String {
        // A colon ends the issuer within the label, encoded or not.
        let issuer = Self.percentEncoded(issuer.replacing(":", with: " "))
        let account = Self.percentEncoded(account)
        return "otpauth://totp/\(issuer):\(account)?secret=\(base32)&issuer=\(issuer)&algorithm=SHA1"
            + "&digits=\(TOTP.digits)&period=\(TOTP.step)"
    }

    /// As the column `totp_factor.sealed_seed` holds it: sealed for this realm and row only. ``SecondFactorMaterial``
    /// opens it.
    func sealed(under key: DataKey, realm: UUIDValue, factor: UUIDValue) throws(TokenError) -> [UInt8] {
        guard let sealed = try? key.seal(bytes, aad: Self.aad(realm, factor)) else { throw .unavailable("seal") }
        return sealed
    }

    /// `nil` when it has not the length of a seed.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.count else { return nil }
        self.bytes = bytes
    }

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// What a sealed seed belongs to.
    static func aad(_ realm: UUIDValue, _ factor: UUIDValue) -> [UInt8] {
        Array("totp".utf8) + realm.bytes + factor.bytes
    }

    /// RFC 3986 §2.3: everything but unreserved characters.
    private static func percentEncoded(_ text: String) -> String {
        let hex = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            default:
                encoded += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
