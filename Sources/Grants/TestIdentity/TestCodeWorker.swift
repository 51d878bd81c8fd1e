public import Logging
public import Persistence

/// Keys the fixed codes of test identities and test numbers: SQL cannot, since the key is not in the database
/// (docs/decisions/0015).
public struct TestCodeWorker: Sendable {
    private let store: TestIdentityStore
    private let keyring: Keyring
    private let logger: Logger

    /// The longest time a code is stored in clear.
    private static let interval = Duration.seconds(1)

    /// Creates a worker.
    public init(store: TestIdentityStore, keyring: Keyring, logger: Logger) {
        self.store = store
        self.keyring = keyring
        self.logger = logger
    }

    /// Works until cancelled.
    public func run() async {
        while !Task.isCancelled {
            do {
                for pending in try await store.pending() {
                    _ = try await store.keep(pending, keyring: keyring)
                    guard let user = pending.user else { continue }
                    logger.notice("test identity keyed", metadata: ["realm": "\(pending.realm)", "user": "\(user)"])
                }
            } catch {
                logger.debug("codes of test identities wait", metadata: ["error": "\(error)"])
            }
            try? await Task.sleep(for: Self.interval)
        }
    }
}

extension TestIdentityStore {
    /// Stores what the database may hold of a code, and forgets the code. - Returns: the key that it stands under.
    func keep(_ pending: PendingCode, keyring: Keyring) async throws -> DataKey {
        let key = try await dataKeys.current(.testCode, realm: pending.realm, keyring: keyring)
        let keyed = OneTimeCode.keyed(pending.code, realm: pending.realm, addressKey: pending.addressKey, under: key)
        try await store(pending, salt: randomBytes(16), keyed: keyed, under: key)
        return key
    }
}
