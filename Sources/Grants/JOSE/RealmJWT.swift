/// A JWT that the realm itself signed (RFC 7519). Its header must be, character for character, one that the realm
/// writes over tokens of that kind: no `alg`, `jwk`, `crit` or `typ` of the token's own choosing is ever read. The
/// claims are read after the signature held.
struct RealmJWT {
    let claims: JOSEObject

    /// `nil` unless it is signed and its claims are an object without a repeated member.
    /// - Parameter isSigned: whether the signature over `input` is that of the key whose header this is.
    init?(
        _ text: String, maximumBytes: Int = JWS.maximumBytes,
        isSigned: (_ header: String, _ signature: [UInt8], _ input: [UInt8]) -> Bool
    ) {
        guard let jws = JWS(text, maximumBytes: maximumBytes),
            isSigned(String(decoding: jws.headerText, as: UTF8.self), jws.signature, jws.input),
            let claims = JOSEObject(jws.payload)
        else { return nil }
        self.claims = claims
    }
}
