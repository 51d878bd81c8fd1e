public import Logging
public import Persistence

/// Keys the fixed codes of test identities: SQL cannot, since the key is not in the database (docs/decisions/0015).
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
                    let key = try await store.dataKeys.current(.testCode, realm: pending.realm, keyring: keyring)
                    let keyed = OneTimeCode.keyed(
                        pending.code, realm: pending.realm, emailKey: pending.emailKey, under: key)
                    try await store.store(pending, salt: randomBytes(16), keyed: keyed, under: key)
                    logger.notice(
                        "test identity keyed", metadata: ["realm": "\(pending.realm)", "user": "\(pending.user)"])
                }
            } catch {
                logger.debug("codes of test identities wait", metadata: ["error": "\(error)"])
            }
            try? await Task.sleep(for: Self.interval)
        }
    }
}
