import Encoding
public import Persistence

/// Cotter's events: requests for approval of a confidential client under a number, and signed.
public struct CotterEvents: Sendable {
    private let requests: ApprovalRequests
    private let store: ApprovalStore
    private let grant: ApprovalGrant
    private let issuer: TokenIssuer

    /// Seconds in which one can be approved.
    private static let lifetime = 60
    private static let method = "TRUSTED_DEVICE"

    /// Creates the service.
    public init(
        requests: ApprovalRequests, store: ApprovalStore, grant: ApprovalGrant, issuer: TokenIssuer
    ) {
        self.requests = requests
        self.store = store
        self.grant = grant
        self.issuer = issuer
    }

    /// The body of `create_pending`.
    public struct Presented: Sendable {
        let hint: String
        let event: String
        let ip: String?

        /// Takes the members as they came.
        /// - Returns: `nil` for another issuer or method than this wire has.
        public init?(hint: String, issuer: String, event: String, ip: String?, method: String, client: Client) {
            guard issuer == client.clientID, method == CotterEvents.method, (ip ?? "").utf8.count <= 100 else {
                return nil
            }
            self.hint = hint
            self.event = event
            self.ip = ip
        }
    }

    /// Asks for an approval. - Returns: the event with `match_number` and `auth_req_id`.
    /// - Throws: ``CotterRefusal``, `TokenError`, or what the database threw.
    public func create(_ presented: Presented, by asker: ApprovalRequests.Asker) async throws -> [UInt8] {
        var form = [
            ("scope", Self.scope(of: asker.client, asker.realm).joined(separator: " ")),
            ("login_hint", presented.hint), ("requested_expiry", String(Self.lifetime)), ("event", presented.event),
        ]
        form.removeAll { $0.1.isEmpty }
        let asked: ApprovalRequests.Asked
        do {
            asked = try await requests.ask(
                FormParameters(form.map { (name: $0.0, value: $0.1) }) ?? FormParameters(), by: asker, proof: nil,
                cotter: .init(ip: presented.ip))
        } catch let error as TokenError where error.code == .invalidRequest {
            throw CotterRefusal.request
        } catch let error as TokenError where error.code == .unauthorizedClient {
            throw CotterRefusal.apiKey
        }
        guard let event = asked.event else { throw TokenError.unavailable("an event without a number") }
        return try await json(of: event, client: asker.client, realm: asker.realm) { object in
            object.member("match_number", asked.matchNumber)
            object.member("auth_req_id", asked.authReqID)
        }
    }

    /// An event of the client; `nil` for any other number.
    /// - Parameter redeems: whether the first call after the approval opens the session.
    public func event(
        _ number: Int32, of client: Client, realm: Realm, redeems: Bool, source: String, userAgent: String?
    ) async throws -> [UInt8]? {
        guard let event = try await store.event(number, realm: realm.id, client: client.key) else { return nil }
        let tokens: TokenResponse? =
            redeems && event.isApproved && !event.isRedeemed
            ? try await self.tokens(of: event, client, realm, source, userAgent) : nil
        return try await json(of: event, client: client, realm: realm) { object in
            if let tokens { object.member("oauth_token", json: tokens.cotterJSON(method: Self.method)) }
        }
    }

    /// The newest of the client's events for a hint that a device may still answer; `nil` if there is none.
    public func newest(for hint: String, of client: Client, realm: Realm) async throws -> [UInt8]? {
        guard let event = try await store.newestEvent(for: hint, realm: realm.id, client: client.key) else {
            return nil
        }
        return try await json(of: event, client: client, realm: realm) { _ in }
    }

    private static func scope(of client: Client, _ realm: Realm) -> [String] {
        ["openid", "offline_access"].filter {
            realm.scopes[$0]?.enabled == true && ($0 == "openid" || client.mayUse(.refreshToken))
        }
    }

    /// `nil` when another call was first, or the account asks for more than an approval.
    private func tokens(
        of event: ApprovalStore.Event, _ client: Client, _ realm: Realm, _ source: String, _ userAgent: String?
    ) async throws -> TokenResponse? {
        let scope = Self.scope(of: client, realm)
        let handle = AuthenticationRequestHandle(
            id: event.id, client: client.key, expiresAt: event.expiresAt, scope: scope, resources: [], contexts: [])
        do {
            return try await grant.redeem(
                handle, and: nil, RequestContext(realm: realm, client: client, source: source), userAgent: userAgent)
        } catch let error as TokenError where [.invalidGrant, .expiredToken, .accessDenied].contains(error.code) {
            return nil
        }
    }

    private func json(
        of event: ApprovalStore.Event, client: Client, realm: Realm, more: (inout JSONWriter) -> Void
    ) async throws -> [UInt8] {
        let now = issuer.clock()
        let key = try await issuer.signingKeys.current(for: realm, client: nil, now: now)
        var claims = JSONWriter(reserving: 1024)
        Self.write(event, client, &claims)
        claims.member("iss", realm.issuer)
        claims.member("iat", Int(now))
        claims.member("jti", event.id.description)
        var object = JSONWriter(reserving: 2048)
        Self.write(event, client, &object)
        object.member("signature", try key.sign(claims.finish(), typ: "postern-event+jwt"))
        more(&object)
        return object.finish()
    }

    private static func write(_ event: ApprovalStore.Event, _ client: Client, _ object: inout JSONWriter) {
        object.member("ID", event.number)
        object.member("CreatedAt", Timestamp.text(event.createdAt))
        object.member("UpdatedAt", Timestamp.text(event.updatedAt))
        object.nullable("DeletedAt", nil)
        object.member("client_user_id", event.hint)
        object.member("issuer", client.clientID)
        object.member("event", event.event)
        object.member("ip", event.ip ?? "unknown")
        object.member("location", "Unknown")
        object.member("timestamp", String(Int(event.createdAt)))
        object.member("method", Self.method)
        object.member("new", event.isNew)
        object.member("approved", event.isApproved)
    }
}

extension Client {
    /// Whether it uses Cotter's events: confidential, with `cap:cotter`.
    public var hasCotterEvents: Bool {
        enabled && isConfidential && permissions.contains("cap:cotter") && mayUse(.ciba)
    }
}
