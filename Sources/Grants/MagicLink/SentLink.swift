public import Persistence

/// A magic link by mail or SMS.
public struct SentLink: SentFactor {
    /// `magic`.
    public let kind = "magic"
    /// The policy of links.
    public let policy = RateLimit.Policy.magicLink
    /// A link is tapped.
    public let phoneChannels = [Channel.sms]
    /// A link does not register anybody.
    public let takesNames = false

    private let requests: SignInRequestStore
    private let keyring: Keyring

    public init(requests: SignInRequestStore, keyring: Keyring) {
        self.requests = requests
        self.keyring = keyring
    }

    /// As long as the link.
    public func lifetime(in realm: Realm) -> Int { realm.policy.magicLinkLifetime }

    /// The app polls until the number was typed on the link's page.
    public func polling(ofHandle id: [UInt8]) -> Polling.Terms? {
        Polling.Terms(interval: Polling.interval, matchNumber: String(MatchNumber.of(handle: id)))
    }

    /// Records the request.
    public func record(
        _ request: SignInRequest, permits: PermitRequest
    ) async throws(StoreError) -> (SignInRequestStore.Recorded?, PermitVerdict) {
        try await requests.record(
            request.record(lifetime: lifetime(in: request.realm)), kind: .magic, permits: permits)
    }

    /// Makes a link and its mail when the statement decided to send one.
    public func decide(
        _ request: SignInRequestStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> SignInRequestStore.Decision {
        let (user, origin): (UUIDValue, RequestOrigin)
        switch try SignInRequestStore.decideLink(request, in: transaction) {
        case .send(let account, let from): (user, origin) = (account, from)
        case .nothing: return .nothing
        case .busy: return .busy
        }
        let link = MagicLink(for: user)
        let mail = MessagePayload(
            originHost: Realm.host(ofOrigin: request.publicOrigin),
            content: .magicLink(
                link: link.url(origin: request.publicOrigin), minutes: Int(request.magicLinkLifetime + 59) / 60,
                origin: origin))
        guard let sealed = try? mail.sealed(under: keyring, realm: request.realm) else { throw .malformedResult }
        try SignInRequestStore.addLink(
            request, user: user, tokenHash: link.tokenHash, mail: sealed, in: transaction)
        return .sent
    }
}

extension RateLimit.Policy {
    /// `magic-link/request`, and the page of a link.
    static let magicLink = Self(rawValue: "magic-link")
}
