import Encoding
import Persistence

/// What takes an added factor away again: the link of a notice (`/undo/<token>`).
struct UndoLink: Sendable {
    let token: UndoToken
    /// Of the realm, without a trailing slash.
    let origin: String

    /// The link's address.
    func url(realm: UUIDValue, keyring: Keyring) throws -> String {
        "\(origin)/undo/\(Base64.urlEncode(try token.sealed(realm: realm, keyring: keyring)))"
    }
}
