import Encoding

/// A JWS in compact form (RFC 7515 §7.1), split and decoded. Nothing of it is verified yet. There is no other reader of
/// one: ``RegisteredJWS``, ``SelfSignedJWS`` and ``RealmJWT`` say whose key must have signed it.
struct JWS {
    /// The first part as it was sent. A device's is the same in each of its proofs.
    let headerText: ArraySlice<UInt8>
    /// The second part, decoded.
    let payload: [UInt8]
    /// The first two parts as they were sent, which the signature is over.
    let input: [UInt8]
    /// The third part, decoded.
    let signature: [UInt8]

    /// Longer texts are never read.
    static let maximumBytes = 8192

    /// `nil` for anything but three parts, of which the second and the third are canonical base64url without padding.
    init?(_ text: String, maximumBytes: Int = Self.maximumBytes) {
        guard text.utf8.count <= maximumBytes else { return nil }
        let bytes = Array(text.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64.urlDecode(Array(parts[1])),
            let signature = Base64.urlDecode(Array(parts[2]))
        else { return nil }
        headerText = parts[0]
        self.payload = payload
        self.signature = signature
        input = Array(bytes[..<parts[1].endIndex])
    }

    /// The first part; `nil` unless it is base64url of a JSON object without a repeated member.
    func header() -> JOSEObject? {
        Base64.urlDecode(Array(headerText)).flatMap(JOSEObject.init)
    }
}

extension JOSEObject {
    /// Whether a header has a member that would change what the rest of it means (RFC 7515 §4.1.11, RFC 7797 §3).
    var hasExtension: Bool { has("crit") || has("b64") }
}

/// The protected header of the JWTs that a realm signs (RFC 7515 §4): its tokens carry exactly these characters.
enum JWSHeader {
    /// The header of tokens that the key `kid` signs, base64url.
    static func text(alg: String, typ: String, kid: String) -> String {
        var header = JSONWriter(reserving: 128)
        header.member("alg", alg)
        header.member("typ", typ)
        header.member("kid", kid)
        return Base64.urlEncode(header.finish())
    }
}
