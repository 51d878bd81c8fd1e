import Grants
import Persistence
import Synchronization

/// Keeps what discovery answers for a second, unless the realm's configuration changes before.
final class DocumentCache: Sendable {
    /// Keys retire by the clock, and with them their algorithms: a document is remade in every second in which it is
    /// asked for. - Parameter second: since the epoch.
    enum Kind: Hashable {
        case metadata(second: Int)
        case jwks(second: Int)

        fileprivate var isJWKS: Bool { if case .jwks = self { true } else { false } }
    }

    private struct Place: Hashable {
        let realm: UUIDValue
        let host: String
        let isJWKS: Bool
    }

    private struct Entry {
        let kind: Kind
        let version: Int
        let document: Document
    }

    private let entries = Mutex<[Place: Entry]>([:])
    /// The most hosts remembered; beyond it the cache is emptied.
    private static let maximumEntries = 10_000

    /// The document as it was made for this configuration; `nil` when it was not.
    func known(_ kind: Kind, _ exchange: Exchange) -> Document? {
        entries.withLock { entries in
            guard let entry = entries[Self.place(kind, exchange)], entry.kind == kind,
                entry.version == exchange.realm.version
            else { return nil }
            return entry.document
        }
    }

    /// The document, made by `body` unless it is known.
    func document(_ kind: Kind, _ exchange: Exchange, _ body: () -> [UInt8]) -> Document {
        if let known = known(kind, exchange) { return known }
        let entry = Entry(kind: kind, version: exchange.realm.version, document: Document(body()))
        entries.withLock { entries in
            if entries.count >= Self.maximumEntries { entries.removeAll(keepingCapacity: true) }
            entries[Self.place(kind, exchange)] = entry
        }
        return entry.document
    }

    private static func place(_ kind: Kind, _ exchange: Exchange) -> Place {
        Place(realm: exchange.realm.id, host: exchange.host, isJWKS: kind.isJWKS)
    }
}
