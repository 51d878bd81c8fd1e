import Foundation

/// One client of one realm or App: it signs people in, keeps their session, and gives out access tokens.
///
/// Make one for each store and keep it. Every function throws ``PosternError``. What the server did not decide changes
/// nothing: a session ends here only when the user signs out, when the server says that it has ended, when it has run out
/// without a refresh token, or when its key is gone.
public actor PosternClient {
    nonisolated let configuration: PosternConfiguration
    nonisolated let surroundings: Surroundings
    /// Without a trailing slash.
    nonisolated let origin: String
    nonisolated let store: any SessionStore
    /// Readings and changes of the document come one after another, so that the state is told in their order.
    nonisolated let desk = Turnstile()

    var broadcaster = Broadcaster()
    var nonces = Nonces()
    var openKey: (stored: StoredKey, key: any SigningKey)?
    /// When the tokens that this object received end, by `uptime`.
    var ends: [String: TimeInterval] = [:]
    /// Access tokens that a server refused before their end.
    var refused: Set<String> = []
    var flights: [String: SharedTask<AccessToken>] = [:]
    var revoking: Task<Void, Never>?
    /// Whether the document had tokens to revoke when it was last seen.
    var mustRevoke = false
    /// By the ids of their requests.
    var polls: [String: Poll] = [:]
    /// Requests whose link is being redeemed.
    var opening: Set<String> = []
    var inbox = SharedInbox()

    /// - Throws: ``PosternError/misuse(_:)`` for an origin that is no origin, or scopes without `openid`.
    public init(_ configuration: PosternConfiguration) throws {
        try self.init(configuration, Surroundings())
    }

    package init(_ configuration: PosternConfiguration, _ surroundings: Surroundings) throws {
        guard let origin = Origin(configuration.origin), origin.isOnlyOrigin else {
            throw PosternError.misuse("origin must be like https://id.example.com, without a path")
        }
        guard origin.isSecure else {
            throw PosternError.misuse("origin must be https; http is for loopback hosts only")
        }
        guard configuration.scopes.contains("openid") else {
            throw PosternError.misuse("scopes must have openid: the ID token says who is signed in")
        }
        guard !configuration.clientID.isEmpty else { throw PosternError.misuse("clientID is empty") }
        self.configuration = configuration
        self.surroundings = surroundings
        self.origin = origin.text
        let digest = Digest.sha256(Data("\(origin.text)\0\(configuration.clientID)".utf8))
        let name = "postern." + digest.prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        store = (configuration.store as? any NamedStore)?.named(name) ?? configuration.store
    }

    deinit { broadcaster.finish() }

    /// The state that the store has now.
    public var state: SessionState {
        get async {
            do { return try await document().state } catch {
                return error as? PosternError == .unavailable(retryAfter: nil) ? .locked : broadcaster.last ?? .locked
            }
        }
    }

    /// The present state, then every change, for any number of readers.
    public nonisolated var states: AsyncStream<SessionState> {
        let (stream, continuation) = Broadcaster.stream()
        let id = UUID()
        continuation.onTermination = { [weak self] _ in
            Task { [weak self] in await self?.stopTelling(id) }
        }
        Task {
            _ = await state
            await startTelling(continuation, id)
        }
        return stream
    }

    private func startTelling(_ reader: AsyncStream<SessionState>.Continuation, _ id: UUID) {
        broadcaster.add(reader, id)
    }

    /// How many read ``states``.
    var readers: Int { broadcaster.readers.count }

    private func stopTelling(_ id: UUID) { broadcaster.remove(id) }

    func publish(_ state: SessionState) {
        let isFirst = broadcaster.last == nil
        guard broadcaster.publish(state) else { return }
        switch state {
        case .signedIn where !isFirst: log("signed_in")
        case .signedOut(let reason) where !isFirst: log("signed_out", ["reason": reason.rawValue])
        case .locked: log("store_locked")
        case .signedIn, .signedOut: break
        }
    }

    func log(_ kind: String, _ detail: [String: String] = [:]) {
        configuration.log?(LogEvent(kind: kind, detail: detail, at: surroundings.now()))
    }
}

extension PosternClient: CustomReflectable {
    /// Has nothing: the members hold secrets.
    public nonisolated var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .class) }
}
