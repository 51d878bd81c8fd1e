import Encoding
import Crypto
public import Persistence

/// The content of a link: the user, and 256 random bits of which the database holds the SHA-256.
public struct MagicLink: Sendable, Equatable {
    /// The account it signs in to.
    public let user: UUIDValue
    /// 32 bytes.
    public let token: [UInt8]

    /// A new link for a user.
    init(for user: UUIDValue) {
        self.user = user
        token = randomBytes(32)
    }

    /// Reads `user_id` and `magic_token`. Returns `nil` unless both are spelled exactly as in the link.
    public init?(userID: String?, token: String?) {
        guard let userID, let user = UUIDValue(userID), user.description == userID,
            let token, token.utf8.count == 43, let bytes = Base64.urlDecode(token), bytes.count == 32
        else { return nil }
        self.user = user
        self.token = bytes
    }

    /// Reads what ``formUserID`` and ``formToken`` wrote.
    public init?(formUserID: String?, formToken: String?) {
        guard let formUserID, formUserID.utf8.count == 32, let id = Hex.decode(formUserID),
            let user = UUIDValue(bytes: id),
            let formToken, formToken.utf8.count == 64, let bytes = Hex.decode(formToken)
        else { return nil }
        self.user = user
        token = bytes
    }

    /// Reads ``encoded``; `nil` for anything else.
    package init?(encoded: some Collection<UInt8>) {
        guard encoded.count == 48, let user = UUIDValue(bytes: Array(encoded.prefix(16))) else { return nil }
        self.user = user
        token = Array(encoded.dropFirst(16))
    }

    /// A link that was never sent.
    public static let unsent = MagicLink(for: UUIDValue.random())

    /// `user (16) ‖ token (32)`.
    package var encoded: [UInt8] { user.bytes + token }
    /// The token as the link spells it.
    package var tokenText: String { Base64.urlEncode(token) }

    /// The user in hexadecimal, for the page's form, so that no part of the query is reflected in the page.
    public var formUserID: String { Hex.encode(user.bytes) }
    /// The token in hexadecimal.
    public var formToken: String { Hex.encode(token) }

    /// What the database keeps of the token.
    package var tokenHash: [UInt8] { Array(SHA256.hash(data: token)) }

    /// The address to open. The origin is that of the page that asked, one of the realm's hosts, or the issuer.
    func url(origin: String) -> String {
        "\(origin)/magic-login?userId=\(user)&token=\(tokenText)"
    }
}

extension MagicLink {
    /// The key under which statements that end links of the account take turns.
    func turn(realm: Realm) -> String { "links|\(realm.id)|\(user)" }
}
