import FoundationEssentials

/// The token of a link `/undo/<token>`: the id of the offer, sealed for its realm. The database holds the id alone, so
/// that nobody who reads it can make a link.
public struct UndoToken: Sendable, Equatable, Redacted {
    /// `undo_link.id`.
    public let id: UUIDValue

    /// The token of an offer.
    public init(_ id: UUIDValue) {
        self.id = id
    }

    /// Opens a token; `nil` when this server did not make it for the realm.
    /// - Parameter sealed: the token, no longer in base64url.
    public init?(opening sealed: [UInt8], realm: UUIDValue, keyring: Keyring) {
        guard let opened = try? keyring.open(sealed, for: .undo, realm: realm, aad: realm.bytes),
            let id = UUIDValue(bytes: opened)
        else { return nil }
        self.id = id
    }

    /// The link's address. - Parameter origin: of the realm, without a trailing slash.
    public func link(origin: String, realm: UUIDValue, keyring: Keyring) throws -> String {
        let sealed = try keyring.seal(id.bytes, for: .undo, realm: realm, aad: realm.bytes)
        let text = Data(sealed).base64EncodedString().map { character in
            switch character {
            case "+": "-"
            case "/": "_"
            default: String(character)
            }
        }
        return "\(origin)/undo/\(text.joined().prefix { $0 != "=" })"
    }
}
