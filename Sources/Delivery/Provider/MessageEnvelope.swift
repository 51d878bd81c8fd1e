import FoundationEssentials
import Persistence

/// What an operator's endpoint gets as JSON. Members without a value are left out.
struct MessageEnvelope: Encodable {
    let id: String
    let type: String
    let realm: String
    let app: String?
    let channel: String
    let to: String
    let kind: String
    let text: String?
    let code: String?
    let link: String?
    let purpose: String
    let locale: String?
    let clientID: String?
    let domain: String?
    let expiresAt: String
    let sub: String?
    let deviceID: String?
    let approvalID: String?

    private enum CodingKeys: String, CodingKey {
        case id, type, realm, app, channel, to, kind, text, code, link, purpose, locale, domain, sub
        case clientID = "client_id"
        case expiresAt = "expires_at"
        case deviceID = "device_id"
        case approvalID = "approval_id"
    }

    /// The members of `detail` that a push carries; others are not sent.
    private struct Approval: Decodable {
        let sub: String?
        let device_id: String?
        let approval_id: String?
    }

    /// - Parameter words: `nil` for the question whether the message may be sent.
    init(_ message: LeasedMessage, _ words: MessageWords?) {
        id = message.id.description
        type = words == nil ? "message.check" : "message.send"
        realm = message.realmSlug
        app = message.app
        channel = message.channel.rawValue
        to = message.recipient
        kind = message.kind
        text = words?.text
        code = words?.code
        link = words?.link
        purpose = message.purpose
        locale = message.locale
        clientID = message.clientID
        domain = message.pageHost
        expiresAt = Date(timeIntervalSince1970: message.expiresAt).formatted(.iso8601)
        let approval =
            message.channel == .push
            ? message.detail.flatMap { try? JSONDecoder().decode(Approval.self, from: Data($0.utf8)) } : nil
        sub = approval?.sub
        deviceID = approval?.device_id
        approvalID = approval?.approval_id
    }

    /// As it is posted.
    func json() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self))
    }
}
