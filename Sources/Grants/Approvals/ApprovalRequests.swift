public import Persistence

/// `POST /connect/bc-authorize` (CIBA Core 1.0 §7): asks for the approval of a person, and never looks whether there is
/// one. A worker does (``ApprovalWorker``).
public struct ApprovalRequests: Sendable {
    private let store: ApprovalStore
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// Seconds between polls, until one comes too early.
    public static let interval = 5
    private static let expiry = 30...300

    /// - Parameter wakeWorker: called after a request was recorded, so that it is resolved at once.
    public init(
        store: ApprovalStore, limiter: RateLimiter, keyring: Keyring, wakeWorker: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.limiter = limiter
        self.keyring = keyring
        self.wakeWorker = wakeWorker
    }

    /// Who asks, and from where.
    public struct Asker: Sendable {
        let client: Client
        let realm: Realm
        let source: String
        let isOwnSource: Bool

        /// - Parameters:
        ///   - source: where the request came from.
        ///   - forwarded: the user's address that a trusted client names.
        public init(_ client: Client, realm: Realm, source: String, forwarded: String?) {
            self.client = client
            self.realm = realm
            self.source = forwarded ?? source
            isOwnSource = forwarded != nil || !client.isConfidential
        }
    }

    /// The uniform answer.
    public struct Asked: Sendable {
        /// What the client polls with.
        public let authReqID: String
        /// Seconds.
        public let expiresIn: Int
        /// Two digits for the client to show; `nil`: none have to be typed.
        public let matchNumber: String?
        /// Of an event.
        let event: ApprovalStore.Event?
    }

    /// What makes a request an event of Cotter's wire.
    struct Cotter {
        let ip: String?
    }

    /// Checks a request in the order of docs/wire.md, and records it.
    /// - Parameter proof: of the key that the approval is bound to; it is used up.
    /// - Throws: `TokenError`, or what the database threw.
    public func ask(_ form: FormParameters, by asker: Asker, proof: ProofUse? = nil) async throws -> Asked {
        try await ask(form, by: asker, proof: proof, cotter: nil)
    }

    func ask(_ form: FormParameters, by asker: Asker, proof: ProofUse?, cotter: Cotter?) async throws -> Asked {
        let (realm, client) = (asker.realm, asker.client)
        guard client.mayUse(.ciba), realm.approvals.isEnabled,
            client.isConfidential || realm.approvals.admitsPublicClients
        else { throw TokenError(.unauthorizedClient, "The client may not ask for approvals.") }
        let access = try Self.access(form, realm: realm, client: client)
        let hint = try Self.hint(form, realm: realm, client: client)
        let message = form["binding_message"]
        guard message.map({ client.isConfidential && BindingMessage.isValid($0) }) ?? true else {
            throw TokenError(.invalidBindingMessage, "The binding message cannot be shown.")
        }
        let lifetime = try Self.lifetime(form) ?? realm.approvals.lifetime
        let event = form["event"] ?? Self.defaultEvent
        guard Self.isEvent(event), client.isConfidential || event == Self.defaultEvent else {
            throw TokenError(.invalidRequest, "The event is not valid.", reason: "event")
        }
        let contexts = try RequestedContexts(form["acr_values"], upTo: .twoFactors)
        let number = client.matchesNumbers ? String(Int.random(in: ApprovalNumber.all)) : nil
        func handle(_ id: UUIDValue, _ expiresAt: Double) -> AuthenticationRequestHandle {
            AuthenticationRequestHandle(
                id: id, client: client.key, expiresAt: expiresAt, scope: access.scope, resources: access.resources,
                contexts: contexts.values)
        }
        let id = UUIDValue.random()
        // What may fail fails before anything is recorded.
        _ = try handle(id, 0).text(realm: realm.id, keyring: keyring)
        let request = ApprovalStore.Request(
            realm: realm.id, id: id, client: client.key, hint: hint.text, event: event, bindingMessage: message,
            matchNumber: number, challenge: randomBytes(32), isEvent: cotter != nil, showsSource: asker.isOwnSource,
            ip: cotter?.ip, source: asker.source, lifetime: Int32(clamping: lifetime),
            hintSession: hint.session, proof: proof)
        let asked = try await limiter.admitting(
            .approval, realm: realm, reservable: hint.session == nil ? [] : [.client],
            subjects: { hint.subjects(asker, fromReserve: !$0.isEmpty) },
            { permits in try await store.ask(request, permits: permits) })
        wakeWorker()
        return Asked(
            authReqID: try handle(id, asked.expiresAt).text(realm: realm.id, keyring: keyring), expiresIn: lifetime,
            matchNumber: number,
            event: asked.event(of: request))
    }

    private static let defaultEvent = "LOGIN"

    private static func isEvent(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }

    private static func access(
        _ form: FormParameters, realm: Realm, client: Client
    ) throws(TokenError) -> RequestedAccess {
        guard let scope = form["scope"] else { throw .missing("scope") }
        guard scope.blankSeparated.contains("openid") else {
            throw TokenError(.invalidRequest, "The scope must contain openid.", reason: "openid")
        }
        let access = try RequestedAccess(form, realm: realm, client: client)
        _ = try access.audience(of: access.scope, realm: realm, client: client)
        return access
    }

    /// Whom a request means, and what limits count.
    private struct Hint {
        /// As given.
        let text: String
        /// One spelling of it.
        let key: String
        /// `sid` of an ID token.
        var session: UUIDValue?

        /// A request with an ID token is counted apart: a stranger cannot use up its permits (docs/decisions/0025). Of
        /// others each client has its own, so that strangers who ask at one do not close the others. What one person is
        /// asked by all of them only the worker can count (postern.is_asked_too_often).
        func subjects(_ asker: Asker, fromReserve: Bool) -> [RateLimiter.Subject] {
            let client = asker.client.clientID
            let target: [RateLimiter.Subject] =
                if let session {
                    [.init(.targetTotal, "device|\(session)")]
                } else {
                    [
                        .init(.target, "\(client)|\(key)|\(asker.source)"), .init(.targetTotal, "\(client)|\(key)"),
                    ]
                }
            return target + [
                .init(.source, asker.source), .init(.client, client, part: fromReserve ? .reserve : .open),
            ]
        }
    }

    private static func hint(_ form: FormParameters, realm: Realm, client: Client) throws(TokenError) -> Hint {
        guard form["request"] == nil, form["login_hint_token"] == nil else {
            throw TokenError(.invalidRequest, "The parameters request and login_hint_token are not supported.")
        }
        switch (form["login_hint"], form["id_token_hint"]) {
        case (let text?, nil):
            guard let hint = LoginHint(text) else {
                throw TokenError(.invalidRequest, "The login_hint is not valid.", reason: "login_hint")
            }
            return Hint(text: hint.text, key: hint.key)
        case (nil, let token?):
            guard let hint = IDTokenHint(token, realm: realm, client: client) else {
                throw TokenError(.invalidRequest, "The id_token_hint is not valid.", reason: "id_token_hint")
            }
            return Hint(text: hint.user.description, key: hint.user.description, session: hint.session)
        case (nil, nil), (.some, .some):
            throw TokenError(.invalidRequest, "Send one of login_hint and id_token_hint.", reason: "hints")
        }
    }

    private static func lifetime(_ form: FormParameters) throws(TokenError) -> Int? {
        guard let text = form["requested_expiry"] else { return nil }
        guard text.utf8.count <= 3, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text),
            expiry.contains(seconds)
        else { throw TokenError(.invalidRequest, "The requested_expiry is not valid.", reason: "requested_expiry") }
        return seconds
    }
}

/// Numbers to be typed on a device: two digits, the first no zero.
enum ApprovalNumber {
    static let all = 10...99
}

extension RateLimit.Policy {
    /// Requests for approval.
    static let approval = Self(rawValue: "approval")
}
