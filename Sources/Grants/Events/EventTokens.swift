import Encoding
public import Persistence

/// Makes security event tokens (RFC 8417) in the profile of the Shared Signals Framework 1.0 §4.
public struct EventTokens: Sendable {
    private let realms: RealmDirectory
    private let signingKeys: SigningKeys
    private let clock: @Sendable () -> Double

    /// Signs with the realm's own key. - Parameter clock: seconds since the epoch.
    public init(realms: RealmDirectory, signingKeys: SigningKeys, clock: @escaping @Sendable () -> Double) {
        self.realms = realms
        self.signingKeys = signingKeys
        self.clock = clock
    }

    /// The token of an event, signed anew for each try, so that it verifies by the keys that are published now.
    ///
    /// There is neither `sub` nor `exp`: so nothing takes it for an ID token or an access token (SSF 1.0 §4.1).
    /// - Throws: when the realm is gone or disabled, or its key is not available.
    public func token(for due: WebhookStore.Due) async throws -> String {
        guard let realm = try await realms.realm(due.realm) else { throw TokenError.unavailable("realm") }
        let now = clock()
        let key = try await signingKeys.current(for: realm, client: nil, now: now)
        return try key.sign(Self.claims(of: due, issuer: realm.issuer, now: now), typ: "secevent+jwt")
    }

    /// The claims. - Parameter issuer: of the realm; `sub` is only unique together with it.
    static func claims(of due: WebhookStore.Due, issuer: String, now: Double) -> [UInt8] {
        var subject = JSONWriter()
        if let user = due.user {
            subject.member("format", "iss_sub")
            subject.member("iss", issuer)
            subject.member("sub", user.description)
        } else {
            subject.member("format", "opaque")
            subject.member("id", due.subject)
        }
        var claims = JSONWriter()
        claims.member("iss", issuer)
        claims.member("aud", due.audience)
        claims.member("iat", Int(now))
        claims.member("toe", Int(due.at))
        claims.member("jti", due.tokenID)
        claims.member("txn", due.transaction)
        claims.member("sub_id", json: subject.finish())
        // The type is one of our own list, which needs no escaping.
        claims.member("events", json: Array("{\"\(due.type)\":".utf8) + SecurityEvent.object(of: due) + [0x7D])
        return claims.finish()
    }
}
