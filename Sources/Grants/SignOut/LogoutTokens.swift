import Encoding
public import Logging
public import Persistence
import Synchronization

/// Tells clients that sessions ended (OpenID Connect Back-Channel Logout 1.0): signs logout tokens and sends them until
/// they are accepted, for a day. Every node runs one; a lost node loses none, since its leases end.
public final class LogoutTokens: Sendable {
    /// Posts a form to a URL of a client. - Returns: `nil` when it was accepted (200 or 204), else a class of failure.
    public typealias Post = @Sendable (_ url: String, _ form: [UInt8]) async -> String?

    private let store: LogoutTokenStore
    private let realms: RealmDirectory
    private let signingKeys: SigningKeys
    private let post: Post
    private let clock: @Sendable () -> Double
    private let logger: Logger
    private let wakes = WakeSignal()
    /// The client of each call under way.
    private let busy = Mutex<[UUIDValue]>([])

    /// Calls under way at a time.
    public static let concurrency = 16
    /// Of one client: a receiver that hangs leaves three quarters to the others.
    private static let share: Int32 = 4
    private static let interval = Duration.seconds(1)
    /// Seconds after which a token is worthless.
    static let lifetime = 120

    /// Creates the sender.
    public init(
        _ store: LogoutTokenStore, realms: RealmDirectory, signingKeys: SigningKeys, post: @escaping Post,
        clock: @escaping @Sendable () -> Double, logger: Logger
    ) {
        self.store = store
        self.logger = logger
        self.realms = realms
        self.signingKeys = signingKeys
        self.post = post
        self.clock = clock
    }

    /// Sends until ``stop()``, then finishes the calls under way. Cancellation abandons them to their lease.
    public func run() async {
        await withDiscardingTaskGroup { calls in
            await self.wakes.forEach(atLeastEvery: Self.interval) { await self.take(&calls) }
        }
    }

    /// Takes nothing more.
    public func stop() {
        wakes.end()
    }

    private func take(_ calls: inout DiscardingTaskGroup) async {
        let busy = self.busy.withLock { $0 }
        let room = Self.concurrency - busy.count
        guard room > 0 else { return }
        do {
            let due = try await store.take(Int32(room), share: Self.share, busy: busy)
            self.busy.withLock { $0 += due.map(\.client) }
            for token in due {
                calls.addTask {
                    await self.send(token)
                    self.busy.withLock { busy in
                        if let index = busy.firstIndex(of: token.client) { busy.remove(at: index) }
                    }
                    self.wakes.signal()
                }
            }
        } catch {
            logger.debug("logout tokens wait: the database is not available", metadata: ["error": "\(error)"])
        }
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
