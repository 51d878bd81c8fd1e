import Grants
import Persistence
import Synchronization

/// Keeps what discovery answers until the realm's configuration changes.
final class DocumentCache: Sendable {
    enum Kind: Hashable {
        case metadata
        /// - Parameter second: since the epoch.
        case jwks(second: Int)
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
        Place(realm: exchange.realm.id, host: exchange.host, isJWKS: kind != .metadata)
    }
}
