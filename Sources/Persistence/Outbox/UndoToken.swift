/// The token of a link `/undo/<token>`: the id of the offer, sealed for its realm. The database holds the id alone, so
/// that a reader of the database cannot make a link.
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

    /// The token, not yet in base64url.
    public func sealed(realm: UUIDValue, keyring: Keyring) throws -> [UInt8] {
        try keyring.seal(id.bytes, for: .undo, realm: realm, aad: realm.bytes)
    }
}
