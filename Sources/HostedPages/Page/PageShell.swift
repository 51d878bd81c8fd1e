import Encoding
import Synchronization
import Texts

/// A page without what differs from request to request: the bytes between its slots.
struct PageShell: Sendable {
    private let first: [UInt8]
    private let rest: [(slot: Int, bytes: [UInt8])]
    private let count: Int

    /// - Parameters:
    ///   - page: with a ``SlotMarker`` in place of each slot.
    init(_ page: String, _ marker: SlotMarker) {
        var pieces = marker.pieces(of: Array(page.utf8))
        first = pieces.removeFirst().bytes
        rest = pieces
        count = pieces.reduce(first.count) { $0 + $1.bytes.count }
    }

    /// The page.
    /// - Parameter slot: the text of a slot, which is escaped here.
    func page(_ slot: (Int) -> String) -> [UInt8] {
        var page: [UInt8] = []
        page.reserveCapacity(count + 2048)
        page += first
        for piece in rest {
            HTMLText.append(slot(piece.slot), to: &page)
            page += piece.bytes
        }
        return page
    }
}

/// Stands for a slot while a shell is rendered. It begins with a random text of the process, so that no text that an
/// administrator or a client chose is taken for one; letters and digits pass through every filter as they are.
struct SlotMarker: Sendable {
    private let prefix = randomName()
    private static let digits = 6

    private static func randomName() -> String {
        String((0..<24).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement() ?? "a" })
    }

    /// The text for a slot.
    func text(_ slot: Int) -> String {
        let number = String(slot)
        return prefix + String(repeating: "0", count: max(0, Self.digits - number.utf8.count)) + number
    }

    /// What stands between the slots; the first has none before it.
    func pieces(of page: [UInt8]) -> [(slot: Int, bytes: [UInt8])] {
        let prefix = Array(prefix.utf8)
        var pieces: [(slot: Int, bytes: [UInt8])] = []
        var slot = 0
        var start = 0
        var index = 0
        while index < page.count {
            guard page[index] == prefix[0], page[index...].starts(with: prefix) else {
                index += 1
                continue
            }
            pieces.append((slot, Array(page[start..<index])))
            start = index + prefix.count + Self.digits
            slot = Int(String(decoding: page[(start - Self.digits)..<start], as: UTF8.self)) ?? 0
            index = start
        }
        pieces.append((slot, Array(page[start...])))
        return pieces
    }
}

/// The shells that were rendered, of all realms.
final class PageShells: Sendable {
    /// All that a shell depends on. The look stands for its realm's configuration: another version is another key.
    struct Key: Hashable {
        let template: String
        let step: String
        let error: String?
        let title: String
        let look: PageLook.Identity
        let fills: [String]
        let shape: [PageValues.Member]

        /// By few of them: every page is looked up, and few keys share these.
        func hash(into hasher: inout Hasher) {
            hasher.combine(look)
            hasher.combine(title)
            hasher.combine(shape.count)
        }
    }

    private let known = Mutex<[Key: PageShell]>([:])

    /// Some 5 KiB each. A realm's pages in one language need about twenty.
    static let maximum = 1024

    /// The shell of a key, made when it is wanted for the first time.
    func shell(_ key: Key, _ make: () -> PageShell) -> PageShell {
        if let shell = known.withLock({ $0[key] }) { return shell }
        let made = make()
        known.withLock { known in
            if known.count >= Self.maximum { known.removeAll() }
            known[key] = made
        }
        return made
    }
}
