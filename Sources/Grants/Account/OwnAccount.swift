public import Persistence

/// A user's own account: read, renamed and deleted by the user.
public struct OwnAccount: Sendable {
    private let store: AccountStore

    public init(_ store: AccountStore) {
        self.store = store
    }

    /// The account; `nil` when it is gone or disabled.
    public func read(realm: Realm, verified: VerifiedAccessToken) async throws(StoreError) -> AccountStore.Account? {
        try await store.account(realm: realm.id, user: verified.session.user)
    }

    /// Changes names. - Returns: `false` when the user is gone.
    public func rename(
        first: AccountStore.NameChange, last: AccountStore.NameChange, realm: Realm, verified: VerifiedAccessToken,
        source: String
    ) async throws(StoreError) -> Bool {
        try await store.setNames(
            realm: realm.id, user: verified.session.user, session: verified.token.owner, first: first, last: last,
            source: source)
    }

    /// Deletes the account with all it has.
    /// - Parameter age: how old the session's sign-in may be, in seconds.
    public func delete(
        signedInWithin age: Int, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> AccountStore.Deletion {
        try await store.delete(
            realm: realm.id, user: verified.session.user, session: verified.token.owner,
            maximumAge: Int32(clamping: age), source: source)
    }
}
