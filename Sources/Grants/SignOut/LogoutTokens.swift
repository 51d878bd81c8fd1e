import Encoding
public import Persistence

/// Tells clients that sessions ended (OpenID Connect Back-Channel Logout 1.0): signs logout tokens and sends them until
/// they are accepted, for a day.
public struct LogoutTokens: Sendable {
    /// Posts a form to a URL of a client. - Returns: `nil` when it was accepted (200 or 204), else a class of failure.
    public typealias Post = @Sendable (_ url: String, _ form: [UInt8]) async -> String?

    private let store: LogoutTokenStore
    private let realms: RealmDirectory
    private let signingKeys: SigningKeys
    private let post: Post
    private let clock: @Sendable () -> Double

    /// How many are sent at a time by one process.
    private static let batch: Int32 = 16
    /// Seconds after which a token is worthless.
    static let lifetime = 120

    /// Creates the sender.
    public init(
        _ store: LogoutTokenStore, realms: RealmDirectory, signingKeys: SigningKeys, post: @escaping Post,
        clock: @escaping @Sendable () -> Double
    ) {
        self.store = store
        self.realms = realms
        self.signingKeys = signingKeys
        self.post = post
        self.clock = clock
    }

    /// Sends what is due. - Returns: how many were taken; a full batch leaves more.
    public func send() async throws(StoreError) -> (taken: Int, mayBeMore: Bool) {
        let due = try await store.take(Self.batch)
        await withTaskGroup(of: Void.self) { group in
            for token in due { group.addTask { await send(token) } }
        }
        return (due.count, due.count == Int(Self.batch))
    }

    private func send(_ due: LogoutTokenStore.Due) async {
        let failure: String?
        do {
            failure = await post(due.uri, Array("logout_token=\(try await text(of: due))".utf8))
        } catch {
            failure = "signing"
        }
        // Lost in doubt, it is sent again after its lease.
        try? await store.settle(due, failure: failure, retryAfter: Self.pause(afterAttempt: due.attempts))
    }

    /// Two seconds, then twice as long each time, an hour at most.
    static func pause(afterAttempt attempt: Int) -> Int32 {
        Int32(min(2 << min(max(attempt, 1) - 1, 11), 3600))
    }

    /// The token (Back-Channel Logout 1.0 §2.4), signed anew for each try since it is short-lived.
    func text(of due: LogoutTokenStore.Due) async throws -> String {
        guard let realm = try await realms.realm(due.realm), let client = realm.clients[due.clientID] else {
            throw TokenError.unavailable("realm or client is gone")
        }
        let now = clock()
        let key = try await signingKeys.current(for: realm, client: client, now: now)
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("aud", client.clientID)
        claims.member("iat", Int(now))
        claims.member("exp", Int(now) + Self.lifetime)
        claims.member("jti", due.id.description)
        claims.member("sub", due.user.description)
        claims.member("sid", due.session.description)
        claims.member("events", json: #"{"http://schemas.openid.net/event/backchannel-logout":{}}"#.utf8)
        return try key.sign(claims.finish(), typ: "logout+jwt")
    }
}
