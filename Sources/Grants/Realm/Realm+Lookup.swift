public import Persistence

extension Realm {
    /// The realm an administrator calls `slug`, as it is now; for commands, which come without a host.
    /// - Returns: `nil` when there is none, or when it is disabled.
    public static func named(_ slug: String, in store: ConfigurationStore) async throws(StoreError) -> Realm? {
        guard let id = try await store.realmID(slug: slug), let json = try await store.realm(id) else { return nil }
        do {
            return try Realm(json: json)
        } catch {
            throw .malformedResult
        }
    }
}
