/// A JWS that a device signed (RFC 7515, compact, ES256) with the key in its own header: who said something, and what.
/// Whether the key is a trusted device, only the database knows.
struct DeviceStatement {
    /// The key: its thumbprint, 32 bytes.
    let thumbprint: [UInt8]
    /// `typ` of the header, in lower case.
    let type: String
    /// The claims.
    let payload: JOSEObject

    /// `nil` unless the signature holds.
    init?(_ text: String) {
        guard text.utf8.count <= DPoPJWS.maximumBytes, let jws = DPoPJWS(text), let header = jws.header(),
            header.text("alg") == "ES256", !header.has("crit"), !header.has("b64"), let jwk = header.object("jwk"),
            DPoPKey.privateMembers.allSatisfy({ !jwk.has($0) }), jwk.isAbsent("alg", or: "ES256"),
            jwk.isAbsent("use", or: "sig"), let key = DPoPKey(jwk, .es256),
            key.material.isValidJWSSignature(jws.signature, for: jws.input)
        else { return nil }
        thumbprint = key.thumbprint
        type = header.text("typ")?.lowercased() ?? ""
        payload = jws.payload
    }
}
