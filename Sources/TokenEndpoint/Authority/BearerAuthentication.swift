import Grants
import HTTPTypes
import Persistence

/// Who calls a protected endpoint (RFC 6750, RFC 9449 §7): the one place where an access token becomes a caller, and
/// where it is decided what that caller's app may manage and how recent the sign-in must be.
///
/// A token opens only what it was made for (decision 28). An access token with a resource in its `aud` was made for an
/// API, which must not be able to use it against its user or its client: nothing but ``claims(_:)`` takes it.
struct BearerAuthentication: Sendable {
    private let verifier: AccessTokenVerifier
    private let proofs: Proofs
    /// Seconds since the epoch.
    private let clock: @Sendable () -> Double

    /// Changes of factors and the end of the account need a sign-in this recent, in seconds (ASVS 7.5.1, RFC 9470).
    static let stepUpAge = 600

    /// What a user's app may manage with the user's token.
    enum Purpose {
        /// The account itself and its sessions: any app.
        case account
        /// Passkeys: apps that sign in with them.
        case passkeys
        /// The second factor: apps that sign in with a factor which asks for it.
        case secondFactor
        /// New trusted devices: apps that ask for approvals or sign in by a device.
        case devices

        fileprivate func admits(_ client: Client) -> Bool {
            switch self {
            case .account: true
            case .passkeys: client.mayUse(.passkey)
            case .secondFactor: client.mayUse(.otp) || client.mayUse(.magic)
            case .devices: client.mayUse(.ciba) || client.mayUse(.device)
            }
        }
    }

    init(verifier: AccessTokenVerifier, proofs: Proofs, clock: @escaping @Sendable () -> Double) {
        self.verifier = verifier
        self.proofs = proofs
        self.clock = clock
    }

    /// The user whose account is managed: by a token whose audience is its client alone. Apps of Cotter's wire send
    /// their access tokens to servers of their own, so that tokens of its sessions manage nothing.
    /// - Parameter age: how long ago the sign-in may be, in seconds; `nil`: any time.
    /// - Throws: the answer to give: 401, 403 for a client's own token and for an app that may not do this.
    func account(
        _ exchange: Exchange, for purpose: Purpose, signedInWithin age: Int?
    ) async throws -> AccountCaller {
        let presented = exchange.presentedToken()
        let verified: VerifiedAccessToken
        switch try await holder(of: exchange, presented) {
        case .user(let user) where user.isForClientAlone && !user.session.isCotters: verified = user
        // A valid token of a service account: there is no user.
        case .service(let service) where service.isForClientAlone: throw Refusal(.insufficientScope())
        case .user, .service, .address: throw Refusal(.bearerChallenge(invalidToken: true))
        }
        guard purpose.admits(verified.client) else { throw Refusal(.insufficientScope()) }
        if let age, verified.session.now - verified.session.authTime > Double(age) {
            throw Refusal(.stepUp(after: verified.session, maximumAge: age))
        }
        return AccountCaller(verified: verified, accessToken: presented.text)
    }

    /// The person whose claims are asked for (OpenID Connect Core §5.3): by any token with the scope `openid`, which
    /// the app asked for and an API may have been given. It opens no more than the claims of its scopes. A form body
    /// may hold the token (RFC 6750 §2.2).
    /// - Throws: the answer to give, as above, and 403 without the scope.
    func claims(_ exchange: Exchange) async throws -> ClaimsCaller {
        let inBody = try exchange.request.method == .post ? exchange.tokenInBody() : nil
        switch try await holder(of: exchange, inBody ?? exchange.presentedToken()) {
        case .user(let verified):
            guard verified.token.scope.contains("openid") else { throw Refusal(.insufficientScope("openid")) }
            return ClaimsCaller(person: .user(verified))
        case .address(let verified): return ClaimsCaller(person: .address(verified))
        case .service: throw Refusal(.insufficientScope())
        }
    }

    /// The backend that calls by the token of its service account. The audience of that token is the client alone as
    /// well: an API that was called with a token does not become the client that called it.
    /// - Throws: `refused`.
    func service<Refused: ServiceRefusal>(
        _ exchange: Exchange, _ refused: Refused.Type
    ) async throws(Refused) -> ServiceCaller {
        guard case .bearer(let text) = exchange.presentedToken() else { throw .unauthorized }
        let holder: AccessTokenVerifier.Holder?
        do {
            holder = try await verifier.identify(text, as: .bearer, realm: exchange.realm, now: clock())
        } catch {
            throw refused.init(TokenError(error), basicUsed: false)
        }
        guard case .service(let verified) = holder, verified.isForClientAlone,
            let client = exchange.realm.clients[verified.account.clientID]
        else { throw .unauthorized }
        guard client.permissions.contains("ept:possession") else { throw .forbidden }
        return ServiceCaller(client: client)
    }

    private func holder(
        of exchange: Exchange, _ presented: PresentedToken
    ) async throws -> AccessTokenVerifier.Holder {
        let found: AccessTokenVerifier.Holder?
        switch presented {
        case .none: throw Refusal(.bearerChallenge(invalidToken: false))
        case .malformed: throw Refusal(.bearerChallenge(invalidToken: true))
        case .bearer(let text):
            found = try await verifier.identify(text, as: .bearer, realm: exchange.realm, now: clock())
            if found == nil, verifier.isBound(text, realm: exchange.realm, now: clock()) {
                throw Refusal(.dpopTokenChallenge)
            }
        case .proven(let text): found = try await holder(of: exchange, proving: text)
        }
        guard let found else { throw Refusal(.bearerChallenge(invalidToken: true)) }
        switch found {
        case .user(let verified): exchange.namedClient?.note(verified.client)
        case .address(let verified): exchange.namedClient?.note(verified.client)
        case .service: break
        }
        return found
    }

    /// The proof is checked before the token is looked at, so that the answer to a bad one tells nothing about a token.
    private func holder(
        of exchange: Exchange, proving text: String
    ) async throws -> AccessTokenVerifier.Holder? {
        do {
            guard let presented = exchange.presentedProof else {
                throw TokenError(DPoPRefusal.invalid(reason: "no proof"))
            }
            let proof = try proofs.verify(presented, accessToken: text, realm: exchange.realm)
            exchange.nextNonce?.note(proof.freshNonce)
            return try await proofs.using(in: exchange.realm) {
                try await verifier.identify(text, as: .proven(proof.use), realm: exchange.realm, now: clock())
            }
        } catch let error as TokenError where error.code == .invalidDPoPProof || error.code == .useDPoPNonce {
            throw Refusal(.dpopChallenge(error), because: error)
        }
    }
}

/// A user's app that may manage the account.
struct AccountCaller: Sendable {
    /// The token, its session and its client.
    let verified: VerifiedAccessToken
    /// The token as it was presented, which proofs beside it name.
    let accessToken: String?

    var user: UUIDValue { verified.session.user }

    fileprivate init(verified: VerifiedAccessToken, accessToken: String?) {
        self.verified = verified
        self.accessToken = accessToken
    }
}

/// The bearer of a token that opens claims.
struct ClaimsCaller: Sendable {
    let person: Person

    /// The person that a token is about.
    enum Person: Sendable {
        case user(VerifiedAccessToken)
        /// A person without an account here, who proved an address.
        case address(VerifiedAddressToken)
    }

    fileprivate init(person: Person) { self.person = person }
}

/// A backend that acts as its own client, with the permission `ept:possession`.
struct ServiceCaller: Sendable {
    let client: Client

    fileprivate init(client: Client) { self.client = client }
}

extension Answer {
    /// A more recent sign-in is wanted (RFC 9470 §3). An account with a second factor will need that factor again,
    /// which the app learns now. A passkey proves as much by itself.
    static func stepUp(after session: LiveSession, maximumAge: Int) -> Answer {
        let proven = AuthenticationContext(amr: session.amr)
        return .stepUp(maximumAge: maximumAge, context: proven == .twoFactors ? .twoFactors : nil)
    }
}
