import Encoding
import Persistence

/// The answer of `get_identity`: a proven address, who has it, and tokens.
public struct CotterIdentity: Sendable {
    /// The JSON body.
    public let json: [UInt8]

    /// Seconds that an identity may be relied on.
    private static let lifetime = 30 * 86_400

    /// - Parameter key: the realm's EdDSA key, which signs the identity.
    init(
        _ redeemed: IdentityCodeStore.Redeemed, _ tokens: TokenResponse, client: Client, userAgent: String?,
        _ key: SigningKey
    ) throws(TokenError) {
        let now = Int(redeemed.now)
        let user = redeemed.user.description
        let id = redeemed.identifier.description
        let type = redeemed.kind.uppercased()

        var identifier = JSONWriter()
        identifier.member("ID", id)
        identifier.member("created_at", Timestamp.text(redeemed.addedAt))
        identifier.member("updated_at", Timestamp.text(redeemed.provedAt))
        identifier.member("update_at", Timestamp.text(redeemed.provedAt))
        identifier.member("deleted_at", "0001-01-01T00:00:00Z")
        identifier.member("identifier", redeemed.value)
        identifier.member("identifier_type", type)
        identifier.member("public_key", "")
        identifier.member("device_type", "BROWSER")
        identifier.member("device_name", userAgent ?? "")
        identifier.member("expiry", Timestamp.text(Double(now + Self.lifetime)))
        identifier.member("timestamp", Timestamp.text(Double(now)))

        let expiresAt = String(now + Self.lifetime)
        let signed = redeemed.value + type + client.clientID + expiresAt
        var token = JSONWriter()
        token.member("identifier_id", id)
        token.member("identifier", redeemed.value)
        token.member("identifier_type", type)
        token.member("receiver", client.clientID)
        token.member("expire_at", expiresAt)
        token.member("timestamp", String(now))
        token.member("signature", Base64.encode(try key.signature(over: Array(signed.utf8))))

        var owner = JSONWriter()
        owner.member("ID", user)
        owner.member("issuer", client.clientID)
        owner.member("client_user_id", user)
        owner.member("enrolled", [])
        owner.member("identifier", redeemed.value)

        var object = JSONWriter(reserving: 4096)
        object.member("identifier", json: identifier.finish())
        object.member("oauth_token", json: tokens.cotterJSON(method: redeemed.method))
        object.member("token", json: token.finish())
        object.member("user", json: owner.finish())
        json = object.finish()
    }
}

extension TokenResponse {
    /// `oauth_token`.
    /// - Parameter method: `OTP` or `MAGIC_LINK`.
    func cotterJSON(method: String) -> [UInt8] {
        var object = JSONWriter(reserving: 2048)
        object.member("access_token", accessToken)
        object.member("id_token", idToken)
        object.member("refresh_token", refreshToken)
        object.member("expires_in", expiresIn)
        object.member("token_type", "Bearer")
        object.member("auth_method", method)
        return object.finish()
    }
}
