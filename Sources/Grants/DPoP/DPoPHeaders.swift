import Synchronization

/// What the header of a proof says, once it has passed the checks of it.
struct DPoPHeader {
    let algorithm: ClientKey.Algorithm
    let key: DPoPKey
}

/// The headers that proofs were signed under lately, so that a device's is read once and not for each of its proofs.
/// What a header says depends on its text alone; nothing about a signature is remembered.
final class DPoPHeaders: Sendable {
    /// A header as it was sent, byte for byte.
    private struct Text: Hashable {
        let bytes: ArraySlice<UInt8>

        func hash(into hasher: inout Hasher) {
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    private let known = Mutex<[Text: DPoPHeader]>([:])

    /// Some 4 KiB each at most.
    static let maximum = 2048

    /// A header that passed the checks and under which a proof was signed; setting one may forget the others.
    subscript(text: ArraySlice<UInt8>) -> DPoPHeader? {
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
