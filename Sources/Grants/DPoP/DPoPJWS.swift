import Encoding

/// A JWS in compact form (RFC 7515 §7.1) whose payload is a JSON object. Nothing of it is verified yet.
struct DPoPJWS {
    /// As it was sent. A device's is the same in each of its proofs.
    let headerText: ArraySlice<UInt8>
    let payload: JOSEObject
    /// What the signature is over.
    let input: [UInt8]
    let signature: [UInt8]

    /// The longest proof.
    static let maximumBytes = 4096

    /// `nil` for anything but three parts, of which the second and the third are canonical base64url without padding,
    /// and the second is a JSON object without a repeated member.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3,
            let payload = Base64.urlDecode(Array(parts[1])).flatMap(JOSEObject.init),
            let signature = Base64.urlDecode(Array(parts[2]))
        else { return nil }
        headerText = parts[0]
        self.payload = payload
        self.signature = signature
        input = Array(bytes[..<parts[1].endIndex])
    }

    /// `nil` unless the first part is of the form of the second.
    func header() -> JOSEObject? {
        Base64.urlDecode(Array(headerText)).flatMap(JOSEObject.init)
    }
}

/// The claims of a proof (RFC 9449 §4.2), of the types that they have to have.
struct DPoPClaims {
    let jti: String
    let htm: String
    let htu: String
    let iat: Double
    let exp: Double?
    let nbf: Double?
    let nonce: String?
    let ath: String?

    /// `nil` where a claim is missing or of another type.
    init?(_ payload: JOSEObject) {
        guard let jti = payload.text("jti"), let htm = payload.text("htm"), let htu = payload.text("htu"),
            let iat = payload.date("iat")
        else { return nil }
        self.jti = jti
        self.htm = htm
        self.htu = htu
        self.iat = iat
        exp = payload.date("exp")
        nbf = payload.date("nbf")
        nonce = payload.text("nonce")
        ath = payload.text("ath")
        guard payload.has("exp") == (exp != nil), payload.has("nbf") == (nbf != nil),
            payload.has("nonce") == (nonce != nil), payload.has("ath") == (ath != nil)
        else { return nil }
    }
}
