public import Persistence

/// Moves data keys, and with them long-lived secrets, to the newest line of the key file.
///
/// Any node and any number of them may do it at once, beside everything else: each row is changed only if it is still
/// the one that was read.
public struct KeyResealing: Sendable {
    private let store: DataKeyStore
    private let keyring: Keyring

    /// Rows that are read at once.
    private static let batch: Int32 = 100

    /// Creates the service.
    public init(store: DataKeyStore, keyring: Keyring) {
        self.store = store
        self.keyring = keyring
    }

    /// Re-seals every data key that is sealed by an older line of the key file under the newest line.
    /// - Parameter progress: called after each batch with the number done so far.
    /// - Returns: how many there were.
    /// - Throws: ``KeyringError`` when a data key needs a line that the key file lacks.
    public func resealDataKeys(progress: (Int) -> Void) async throws -> Int {
        var done = 0
        while true {
            let count = try await store.reseal(limit: Self.batch, keyring: keyring)
            done += count
            if count > 0 { progress(done) }
            if count < Int(Self.batch) { return done }
        }
    }
}
