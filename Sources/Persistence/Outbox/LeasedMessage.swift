import FoundationEssentials

/// A message of the outbox, on lease.
public struct LeasedMessage: Sendable {
    /// The tenant.
    public let realm: UUIDValue
    /// The row's id, which the payload is sealed for.
    public let id: UUIDValue
    /// What it is sent by.
    public let channel: Channel
    /// Where it goes: a mail address, an E.164 number, the handle of a device.
    public private(set) var recipient: String
    /// What it is about (``MessagePayload/template``, or that of a notice).
    public let template: String
    /// `otp`, `link`, `notice` or `approval`.
    public let kind: String
    /// What it is for: `sign-in`, `notice`, ….
    public let purpose: String
    /// What is secret, sealed; `nil` for a notice.
    public let payload: [UInt8]?
    /// What a notice or approval says, as JSON text.
    public let detail: String?
    /// A code for an address that has no account yet.
    public let isRegistration: Bool
    /// Counts this attempt.
    public let attempt: Int
    /// Seconds since the epoch, by the database clock.
    public let queuedAt: Double
    /// By the database clock.
    public let ageInSeconds: Double
    /// How long the message is still of use, by the database clock when it was taken.
    public let secondsLeft: Double
    /// Seconds since the epoch, by the database clock.
    public let expiresAt: Double
    /// How the attempt before ended.
    public let lastError: String?
    /// The language that was asked for.
    public let locale: String?
    /// The realm's slug.
    public let realmSlug: String
    /// The realm as people know it, or the App in its place.
    public let realmName: String
    /// The App's slug.
    public let app: String?
    /// The client that asked.
    public let clientID: String?
    /// That client as people know it.
    public let askedBy: String?
    /// The host of the realm or App.
    public let pageHost: String?
    /// The hash of the client's Android app.
    public let smsHash: String?
    /// The provider asked last.
    public let provider: String?
    /// Its failures in a row.
    public let providerFailures: Int
    /// The providers that will never take it.
    public let refusedBy: [String]
    /// Who carries the channel, in order; empty for mail.
    public let providers: [Provider]
    /// Whom to ask first.
    public let hook: PreSendHook?
    /// The sender of the realm's mails; `nil`: that of the server.
    public let mailFrom: String?
    /// Where answers to the realm's mails go.
    public let replyTo: String?
    /// Texts of the App or realm in the place of ours, by key.
    public let texts: [String: String]
    /// The colour of the App's or realm's pages, `#rrggbb`.
    public let accent: String?
    /// The address of their logo.
    public let logo: String?
}

extension LeasedMessage {
    /// A message that is in no queue, to try out the providers of a channel.
    public init(trying channel: ConfiguredChannel, to recipient: String) {
        self.init(
            realm: channel.realm, id: .random(), channel: channel.channel, recipient: recipient, template: "otp",
            kind: "otp", purpose: "verify", payload: nil, detail: nil, isRegistration: false, attempt: 1, queuedAt: 0,
            ageInSeconds: 0, secondsLeft: 60, expiresAt: channel.now + 60, lastError: nil, locale: nil,
            realmSlug: channel.realmSlug, realmName: channel.realmName, app: nil, clientID: nil, askedBy: nil,
            pageHost: channel.pageHost, smsHash: nil, provider: nil, providerFailures: 0, refusedBy: [],
            providers: channel.providers, hook: nil, mailFrom: nil, replyTo: nil, texts: [:], accent: nil,
            logo: nil)
    }

    /// The message with the handle of its device in clear: handles are sealed in the database
    /// (`postern.push_approval`).
    /// - Returns: `nil` when the line of the key file is gone.
    public func openingRecipient(with keyring: Keyring) -> LeasedMessage? {
        guard channel == .push, recipient.hasPrefix(Self.sealedPrefix) else { return self }
        guard let sealed = Data(base64Encoded: String(recipient.dropFirst(Self.sealedPrefix.count))),
            let handle = PushHandle.opened(Array(sealed), realm: realm, keyring: keyring)
        else { return nil }
        var opened = self
        opened.recipient = handle
        return opened
    }

    private static let sealedPrefix = "sealed:"

    /// As `postern.take_messages` gives it.
    static let decode: RecordDecoder<LeasedMessage> = { (row) throws(StoreError) in
        LeasedMessage(
            realm: try row("realm_id"), id: try row("id"), channel: try row("channel"),
            recipient: try row("recipient"), template: try row("template"), kind: try row("kind"),
            purpose: try row("purpose"), payload: try row("payload"), detail: try row("detail"),
            isRegistration: try row("priority") as Int == 2, attempt: try row("attempts"),
            queuedAt: try row("queued_at", sql: "extract(epoch FROM created_at)::float8"),
            ageInSeconds: try row("age", sql: "extract(epoch FROM now() - created_at)::float8"),
            secondsLeft: try row("seconds_left", sql: "extract(epoch FROM expires_at - now())::float8"),
            expiresAt: try row("expires", sql: "extract(epoch FROM expires_at)::float8"),
            lastError: try row("last_error"), locale: try row("locale"), realmSlug: try row("realm"),
            realmName: try row("realm_name"), app: try row("app"), clientID: try row("client_id"),
            askedBy: try row("asked_by"), pageHost: try row("page_host"), smsHash: try row("sms_hash"),
            provider: try row("provider"), providerFailures: try row("provider_failures"),
            refusedBy: try row("refused_by"), providers: try document(row("providers")) ?? [],
            hook: try document(row("hook")), mailFrom: try row("mail_from"), replyTo: try row("reply_to"),
            texts: try document(row("texts")) ?? [:], accent: try row("accent"), logo: try row("logo"))
    }

    /// A JSON document of a column.
    static func document<Value: Decodable>(_ json: String?) throws(StoreError) -> Value? {
        guard let json, !json.isEmpty else { return nil }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(json.utf8))
        } catch {
            throw .malformedResult
        }
    }
}
