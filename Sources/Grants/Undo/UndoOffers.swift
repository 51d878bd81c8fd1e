import Encoding
public import Persistence

/// `/undo/<token>`: what the page shows about a change of an account, and undoing it. Only the answer changes
/// something.
public struct UndoOffers: Sendable {
    private let store: UndoStore
    private let limiter: RateLimiter
    private let keyring: Keyring

    public init(store: UndoStore, limiter: RateLimiter, keyring: Keyring) {
        self.store = store
        self.limiter = limiter
        self.keyring = keyring
    }

    /// What the token of a link offers to undo; `nil` when there is nothing (more) to undo.
    /// - Throws: `rate_limited` (policy `magic-link`), or what the database threw.
    public func offer(_ token: String, realm: Realm, source: String) async throws -> UndoStore.Offer? {
        guard let token = open(token, realm) else {
            try await limiter.count(.magicLink, [.init(.source, source)], realm: realm)
            return nil
        }
        let looked = try await limiter.admitting(.magicLink, [.init(.source, source)], realm: realm) { permits in
            try await store.look(at: token, realm: realm.id, permits: permits)
        }
        return if case .shown(let offer) = looked { offer } else { nil }
    }

    /// Undoes the change and ends every session, once.
    /// - Throws: `rate_limited` (policy `magic-link`), or what the database threw.
    public func undo(_ token: String, realm: Realm, source: String) async throws -> UndoStore.Undone {
        guard let token = open(token, realm) else {
            try await limiter.count(.magicLink, [.init(.source, source)], realm: realm)
            return .gone
        }
        return try await limiter.admitting(.magicLink, [.init(.source, source)], realm: realm) { permits in
            try await store.undo(token, realm: realm.id, source: source, permits: permits)
        }
    }

    private func open(_ token: String, _ realm: Realm) -> UndoToken? {
        guard token.utf8.count <= 256, let sealed = Base64.urlDecode(token) else { return nil }
        return UndoToken(opening: sealed, realm: realm.id, keyring: keyring)
    }
}
