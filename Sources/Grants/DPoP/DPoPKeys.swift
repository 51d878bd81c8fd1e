import Synchronization

/// The keys that proofs were signed with lately, so that a device's key is read from its JWK once and not for each of
/// its proofs. What a key is depends on its text and the algorithm alone; nothing about a signature is remembered.
final class DPoPKeys: Sendable {
    /// A key as a header names it, byte for byte.
    struct Name: Hashable {
        private let algorithm: ClientKey.Algorithm
        private let jwk: [UInt8]

        /// `nil` for a header without a key.
        init?(_ header: JOSEObject, _ algorithm: ClientKey.Algorithm) {
            guard let jwk = header.bytes("jwk") else { return nil }
            self.algorithm = algorithm
            self.jwk = jwk
        }
    }

    private let known = Mutex<[Name: DPoPKey]>([:])

    /// Some 2 KiB each at most.
    static let maximum = 2048

    /// A key that passed ``DPoPVerifier/checkKey(_:_:)`` and has signed a proof; setting one may forget the others.
    subscript(name: Name) -> DPoPKey? {
        get { known.withLock { $0[name] } }
        set {
            known.withLock { known in
                if known.count >= Self.maximum { known.removeAll(keepingCapacity: true) }
                known[name] = newValue
            }
        }
    }
}
