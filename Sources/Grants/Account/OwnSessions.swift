public import Persistence

/// A user's own sessions: seen and ended by the user, from one of them.
public struct OwnSessions: Sendable {
    private let store: OwnSessionStore

    public init(_ store: OwnSessionStore) {
        self.store = store
    }

    /// The user's live sessions, newest first.
    public func list(realm: Realm, verified: VerifiedAccessToken) async throws(StoreError) -> [OwnSessionStore.Listed] {
        try await store.list(realm: realm.id, user: verified.session.user)
    }

    /// Ends one. - Returns: `false` when the user has no live session of that id.
    public func end(
        _ session: UUIDValue, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> Bool {
        try await store.end(
            realm: realm.id, user: verified.session.user, session: session, by: verified.token.owner, source: source)
    }

    /// Signs the user out everywhere: sessions, codes, links and handles end.
    /// - Parameter keepsCurrent: whether the session that asks goes on.
    /// - Returns: `false` when the session that asks is not alive any more; nothing was done then.
    public func endAll(
        keepsCurrent: Bool, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> Bool {
        try await store.endAll(
            realm: realm.id, user: verified.session.user, by: verified.token.owner, keepsCurrent: keepsCurrent,
            source: source)
    }
}
