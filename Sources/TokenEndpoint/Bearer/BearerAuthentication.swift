import Grants
import HTTPTypes
import Persistence

/// Who calls a protected endpoint (RFC 6750, RFC 9449 §7): the one place where an access token becomes a user, and
/// where it is decided what that user's app may manage and how recent the sign-in must be.
///
/// A token opens only what it was made for (decision 28). An access token with a resource in its `aud` was made for an
/// API, which must not be able to use it against its user: ``authenticate(_:for:signedInWithin:)``, which every account
/// endpoint calls, does not take it.
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

    /// The user who may manage the account: by a token whose audience is its client alone.
    /// - Parameter age: how long ago the sign-in may be, in seconds; `nil`: any time.
    /// - Throws: the answer to give: 401, 403 for a client's own token and for an app that may not do this.
    func authenticate(
        _ exchange: Exchange, for purpose: Purpose, signedInWithin age: Int? = nil
    ) async throws -> VerifiedAccessToken {
        guard case .user(let verified) = try await holder(of: exchange, exchange.bearer()) else {
            throw Refusal(.bearerChallenge(invalidToken: true))
        }
        guard verified.isForClientAlone else { throw Refusal(.bearerChallenge(invalidToken: true)) }
        guard purpose.admits(verified.client) else { throw Refusal(.insufficientScope()) }
        if let age, verified.session.now - verified.session.authTime > Double(age) {
            throw Refusal(.stepUp(after: verified.session, maximumAge: age))
        }
        return verified
    }

    /// The user whose claims are asked for (OpenID Connect Core §5.3): by any token with the scope `openid`, which the
    /// app asked for and an API may have been given. It opens no more than the claims of its scopes.
    /// - Throws: the answer to give, as above, and 403 without the scope.
    /// - Parameter bodyToken: the `access_token` of a form body, where the request may have one (RFC 6750 §2.2).
    func authenticateForClaims(_ exchange: Exchange, bodyToken: String?) async throws -> Person {
        let person = try await holder(of: exchange, bodyToken.map(Exchange.Bearer.token) ?? exchange.bearer())
        if case .user(let verified) = person, !verified.token.scope.contains("openid") {
            throw Refusal(.insufficientScope("openid"))
        }
        return person
    }

    /// The person that a token is about.
    enum Person {
        case user(VerifiedAccessToken)
        /// A person without an account here, who proved an address.
        case address(VerifiedAddressToken)
    }

    private func holder(of exchange: Exchange, _ bearer: Exchange.Bearer) async throws -> Person {
        let holder: AccessTokenVerifier.Holder?
        switch bearer {
        case .none: throw Refusal(.bearerChallenge(invalidToken: false))
        case .malformed: throw Refusal(.bearerChallenge(invalidToken: true))
        case .token(let text):
            holder = try await verifier.identify(text, as: .bearer, realm: exchange.realm, now: clock())
            if holder == nil, verifier.isBound(text, realm: exchange.realm, now: clock()) {
                throw Refusal(.dpopTokenChallenge)
            }
        case .proven(let text): holder = try await self.holder(of: exchange, proving: text)
        }
        switch holder {
        case .user(let verified):
            exchange.namedClient?.note(verified.client)
            return .user(verified)
        case .address(let verified):
            exchange.namedClient?.note(verified.client)
            return .address(verified)
        // A valid token of a service account: there is no user.
        case .service: throw Refusal(.insufficientScope())
        case nil: throw Refusal(.bearerChallenge(invalidToken: true))
        }
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
extension Answer {
    /// A more recent sign-in is wanted (RFC 9470 §3). An account with a second factor will need that factor again,
    /// which the app learns now. A passkey proves as much by itself.
    static func stepUp(after session: LiveSession, maximumAge: Int) -> Answer {
        let proven = AuthenticationContext(amr: session.amr)
        return .stepUp(maximumAge: maximumAge, context: proven == .twoFactors ? .twoFactors : nil)
    }
}
