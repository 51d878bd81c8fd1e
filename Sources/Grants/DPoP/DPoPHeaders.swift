import Synchronization

/// The headers of the last valid proofs. A device sends the same header with each of its proofs, so the server reads it
/// once. What a header says depends on its text alone. Whether a signature was valid is not kept.
final class DPoPHeaders: Sendable {
    /// A header as it was sent, byte for byte.
    private struct Text: Hashable {
        let bytes: ArraySlice<UInt8>

        func hash(into hasher: inout Hasher) {
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    private let known = Mutex<[Text: SelfSignedHeader]>([:])

    /// Some 4 KiB each at most.
    static let maximum = 2048

    /// A header that passed the checks and under which a proof was signed; setting one may forget the others.
    subscript(text: ArraySlice<UInt8>) -> SelfSignedHeader? {
        get { known.withLock { $0[Text(bytes: text)] } }
        set {
            known.withLock { known in
                if known.count >= Self.maximum { known.removeAll(keepingCapacity: true) }
                // A copy: the slice would keep the whole proof.
                known[Text(bytes: Array(text)[...])] = newValue
            }
        }
    }
}
