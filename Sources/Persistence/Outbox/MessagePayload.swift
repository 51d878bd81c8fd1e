import FoundationEssentials

/// What the sealed payload of an outbox row holds: the facts of a mail, turned into words only when it is sent.
///
/// Stored as JSON and sealed, because it holds a code or a link. A field may be added as an optional; none may be
/// renamed while rows written by an older server can still be in the queue.
public struct MessagePayload: Codable, Sendable, Equatable {
    /// What the mail is about.
    public enum Content: Codable, Sendable, Equatable {
        /// A one-time code, valid for `minutes`.
        case otp(code: String, minutes: Int)
        /// A link that signs in, valid for `minutes`. `https`, or `http` on `localhost` or a host below it. `origin`:
        /// who asked; `nil` from an older server.
        case magicLink(link: String, minutes: Int, origin: RequestOrigin? = nil)
        /// A passkey was enrolled; `name` is that of the product.
        case passkeyAdded(name: String)
        /// A passkey was deleted; `name` is that of the product.
        case passkeyRemoved(name: String)
    }

    /// The host the code is for, without scheme and port: what platforms compare before they fill in a code.
    public let originHost: String
    /// What the mail is about.
    public let content: Content
    /// The whole text, where the asker gave it.
    public var text: String?

    /// A payload. - Parameter text: the whole text, in the place of the realm's own.
    public init(originHost: String, content: Content, text: String? = nil) {
        self.originHost = originHost
        self.content = content
        self.text = text
    }

    /// The name of the template, as in the column `message_outbox.template`.
    public var template: String {
        switch content {
        case .otp: "otp"
        case .magicLink: "magic-link"
        case .passkeyAdded: "passkey-added"
        case .passkeyRemoved: "passkey-removed"
        }
    }

    /// The code in it, if any.
    public var code: String? {
        if case .otp(let code, _) = content { code } else { nil }
    }

    /// The link in it, if any.
    public var link: String? {
        if case .magicLink(let link, _, _) = content { link } else { nil }
    }

    /// The number of minutes after which the mail is useless; `nil` for notices.
    public var usefulMinutes: Int? {
        switch content {
        case .otp(_, let minutes), .magicLink(_, let minutes, _): minutes
        case .passkeyAdded, .passkeyRemoved: nil
        }
    }

    /// The payload as the column `message_outbox.payload` holds it: JSON, sealed for this realm and row only.
    public func sealed(under keyring: Keyring, realm: UUIDValue, mail: UUIDValue) throws -> [UInt8] {
        try keyring.seal(
            Array(try JSONEncoder().encode(self)), for: .mail, realm: realm, aad: realm.bytes + mail.bytes)
    }

    /// Opens what ``sealed(under:realm:mail:)`` made.
    public init(opening sealed: [UInt8], with keyring: Keyring, realm: UUIDValue, mail: UUIDValue) throws {
        let json = try keyring.open(sealed, for: .mail, realm: realm, aad: realm.bytes + mail.bytes)
        self = try JSONDecoder().decode(MessagePayload.self, from: Data(json))
    }
}
