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
