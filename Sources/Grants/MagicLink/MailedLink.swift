public import Persistence

/// A magic link by mail.
public struct MailedLink: SentFactor {
    /// `magic`.
    public let kind = "magic"
    /// The policy of links.
    public let policy = RateLimit.Policy.magicLink
    /// A link does not register anybody.
    public let takesNames = false

    private let links: MagicLinkStore
    private let keyring: Keyring

    /// Works on `links`.
    public init(links: MagicLinkStore, keyring: Keyring) {
        self.links = links
        self.keyring = keyring
    }

    /// As long as the link.
    public func lifetime(in realm: Realm) -> Int { realm.policy.magicLinkLifetime }

    /// The app polls until the number was typed on the link's page.
    public func polling(ofHandle id: [UInt8]) -> Approval.Polling? {
        Approval.Polling(interval: Approval.interval, matchNumber: String(MatchNumber.of(handle: id)))
    }

    /// Records the request.
    public func record(
        _ request: SignInRequest, permits: PermitRequest
    ) async throws(StoreError) -> (RecordedRequest?, PermitVerdict) {
        let (recorded, verdict) = try await links.request(
            MagicLinkStore.LinkRequest(
                realm: request.realm.id, id: request.id, resendOf: request.resendOf, email: request.email.text,
                emailKey: request.email.key, client: request.client?.key, app: request.realm.app?.slug,
                source: request.source, lifetime: Int32(clamping: lifetime(in: request.realm)),
                hint: request.hint.map { (user: $0.user, session: $0.session) }),
            permits: permits)
        return switch recorded {
        case .handle(let id): (.handle(id), verdict)
        case .busy: (.busy, verdict)
        case nil: (nil, verdict)
        }
    }

    /// Makes a link and its mail when the statement decided to send one.
    public func decide(
        _ request: SignInStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> Bool {
        guard let decision = try MagicLinkStore.decide(request, in: transaction) else { return false }
        let link = MagicLink(for: decision.user)
        let mailID = UUIDValue.random()
        let mail = MailPayload(
            realmName: request.displayName, originHost: Realm.host(ofOrigin: request.publicOrigin),
            content: .magicLink(
                link: link.url(origin: request.publicOrigin), minutes: Int(request.magicLinkLifetime + 59) / 60,
                origin: decision.origin))
        guard let payload = try? mail.sealed(under: keyring, realm: request.realm, mail: mailID) else {
            throw .malformedResult
        }
        let draft = MagicLinkStore.Draft(tokenHash: link.tokenHash, mailID: mailID, payload: payload)
        try MagicLinkStore.add(draft, of: decision.user, for: request, in: transaction)
        return true
    }
}
