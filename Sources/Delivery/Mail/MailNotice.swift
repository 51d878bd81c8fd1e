import FoundationEssentials
import Persistence

/// What an unsealed row of the outbox says: a notice about a change to an account (`postern.queue_notice`). Nothing in
/// it is secret, so SQL alone can queue it.
struct MailNotice: Sendable {
    /// The change.
    enum Template: String, Sendable, CaseIterable {
        case passkeyAdded = "passkey-added"
        case passkeyRemoved = "passkey-removed"
        case totpAdded = "totp-added"
        case totpRemoved = "totp-removed"
        case recoveryCodesUsedUp = "recovery-codes-used-up"
        case addressChanged = "address-changed"
        case accountDeleted = "account-deleted"
        case identifierAdded = "identifier-added"
        case identifierRemoved = "identifier-removed"
        case identifierMoved = "identifier-moved"
        case deviceAdded = "device-added"
        case deviceRemoved = "device-removed"
        case phoneKeyAdded = "phone-key-added"
        case approvalReported = "approval-reported"
        case accountSecured = "account-secured"
    }

    /// The members of `message_outbox.detail` that a text is made from; others are ignored.
    private struct Detail: Decodable {
        let aaguid: String?
        let identifier: String?
        let number: String?
        let device: String?
        let client: String?
        let at: Double?
        let source: String?
        let undo: String?
        let origin: String?
    }

    /// A device that was added.
    struct Device: Sendable {
        /// As its holder calls it; `nil`: it has no name.
        let name: String?
        /// Through which client, when, and from where.
        let origin: RequestOrigin
    }

    let template: Template
    /// The product name of the passkey that the notice is about. Its holder chose the display name, so that is never
    /// quoted.
    let passkey: String
    /// The address, or the phone number without its middle, that the notice is about.
    let identifier: String

    /// The device that the notice is about.
    var device: Device?

    /// What undoes the change again; `nil` where its recipient cannot.
    var undo: UndoLink?

    init(_ template: Template, aaguid: UUIDValue? = nil, identifier: String? = nil) {
        self.template = template
        passkey = AuthenticatorNames.name(of: aaguid)
        self.identifier = identifier ?? "unknown"
    }

    /// - Parameter detail: JSON text.
    /// - Returns: `nil` for a template that this binary does not know.
    init?(template: String, detail: String) {
        guard let template = Template(rawValue: template) else { return nil }
        let detail = try? JSONDecoder().decode(Detail.self, from: Data(detail.utf8))
        self.init(
            template, aaguid: detail?.aaguid.flatMap { UUIDValue($0) }, identifier: detail?.identifier ?? detail?.number
        )
        if let client = detail?.client, let time = detail?.at {
            device = Device(
                name: detail?.device,
                origin: RequestOrigin(application: client, time: time, source: detail?.source))
        }
        if let id = detail?.undo.flatMap({ UUIDValue($0) }), let origin = detail?.origin {
            undo = UndoLink(token: UndoToken(id), origin: origin)
        }
    }
}
