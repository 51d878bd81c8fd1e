public import Persistence

/// Moves long-lived secrets to the newest line of the key file: first what version 0 sealed directly under a line, then
/// data keys.
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

    /// The result of moving the secrets of version 0.
    public struct Moved: Sendable, Equatable {
        /// How many are under data keys now, by what they are.
        public internal(set) var moved: [DataKey.Purpose: Int] = [:]
        /// How many could not be opened: their line is not in the key file.
        public internal(set) var unopened = 0
        /// Connections of version 0. While there are any nothing is moved, since such a server could not read it any
        /// more.
        public internal(set) var version0Connections = 0

        /// Nothing yet.
        public init() {}

        /// Adds what was moved in another cluster.
        public mutating func add(_ other: Self) {
            moved.merge(other.moved, uniquingKeysWith: +)
            unopened += other.unopened
            version0Connections += other.version0Connections
        }

        /// In all.
        public var count: Int { moved.values.reduce(0, +) }
    }

    /// Puts what version 0 left under data keys.
    public func moveVersion0Secrets() async throws -> Moved {
        var result = Moved()
        var unopened: Set<String> = []
        while true {
            let secrets = try await store.version0Secrets(limit: Self.batch)
                .filter { !unopened.contains("\($0.purpose) \($0.realm) \($0.name)") }
            if secrets.isEmpty { break }
            result.version0Connections = try await store.version0Connections()
            guard result.version0Connections == 0 else { break }
            var progressed = false
            for secret in secrets {
                do {
                    if try await move(secret) { result.moved[secret.purpose, default: 0] += 1 }
                    progressed = true
                } catch is KeyringError {
                    unopened.insert("\(secret.purpose) \(secret.realm) \(secret.name)")
                }
            }
            // Whole batches that cannot be opened hide what lies behind them: their line has to come back first.
            guard progressed else { break }
        }
        result.unopened = unopened.count
        return result
    }

    private func move(_ secret: DataKeyStore.Version0Secret) async throws -> Bool {
        switch secret.purpose {
        case .signingKey:
            let aad = SigningKeys.aad(secret.realm, secret.name)
            let raw = try keyring.openVersion0(secret.sealed, aad: aad)
            let key = try await store.current(.signingKey, realm: secret.realm, keyring: keyring)
            return try await store.moveSigningKey(secret, sealed: key.seal(raw, aad: aad))
        case .totpSeed:
            guard let factor = secret.row else { throw KeyringError.cannotOpen }
            let aad = TOTPSeed.aad(secret.realm, factor)
            let raw = try keyring.openVersion0(secret.sealed, aad: aad)
            let key = try await store.current(.totpSeed, realm: secret.realm, keyring: keyring)
            return try await store.moveTOTPSeed(secret, sealed: key.seal(raw, aad: aad), keyring: keyring)
        case .testCode:
            return try await store.moveTestCode(secret, keyring: keyring)
        case .recoveryCode, .addressSubject:
            return false
        }
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
