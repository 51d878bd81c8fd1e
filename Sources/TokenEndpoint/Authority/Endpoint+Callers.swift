import Grants

/// Who may call an endpoint, but for those that take no credential (``Endpoint``).
extension Endpoint {
    // MARK: Clients

    /// A client that speaks for itself: by secret or assertion, a public one by its name.
    static func client(
        _ clients: ClientAuthenticator, _ handler: @escaping @Sendable (Exchange, CallingClient) async throws -> Answer
    ) -> Endpoint {
        caller({ try await clients.authenticated($0) }, handler)
    }

    /// The same where a proof of possession may come with the request: the assertion is used up together with it.
    static func client(
        _ clients: ClientAuthenticator, _ proofs: Proofs,
        _ handler: @escaping @Sendable (Exchange, ProvingClient) async throws -> Answer
    ) -> Endpoint {
        caller({ try clients.verified($0, proofs) }, handler)
    }

    /// A confidential client that asks about tokens.
    static func resourceServer(
        _ clients: ClientAuthenticator, _ handler: @escaping @Sendable (Exchange, CallingClient) async throws -> Answer
    ) -> Endpoint {
        caller(
            { exchange in
                let caller = try await clients.authenticated(exchange)
                guard caller.client.isConfidential else { throw TokenError.invalidClient("public client") }
                return caller
            }, handler)
    }

    /// A backend by the two keys of Cotter's wire.
    static func apiKeys(
        _ keys: APIKeys, _ handler: @escaping @Sendable (Exchange, APIKeysCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try keys.caller($0) }, handler)
    }

    // MARK: Access tokens

    /// A user's app that manages the account (``BearerAuthentication/account(_:for:signedInWithin:)``).
    static func account(
        _ bearer: BearerAuthentication, for purpose: BearerAuthentication.Purpose = .account,
        signedInWithin age: Int? = nil,
        _ handler: @escaping @Sendable (Exchange, AccountCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try await bearer.account($0, for: purpose, signedInWithin: age) }, handler)
    }

    /// Who asks for a person's claims: by any token with the scope `openid`.
    static func claims(
        _ bearer: BearerAuthentication, _ handler: @escaping @Sendable (Exchange, ClaimsCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try await bearer.claims($0) }, handler)
    }

    /// A backend by the access token of its service account.
    static func service<Refused: ServiceRefusal>(
        _ bearer: BearerAuthentication, _ refused: Refused.Type,
        _ handler: @escaping @Sendable (Exchange, ServiceCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try await bearer.service($0, refused) }, handler)
    }

    // MARK: Devices

    /// A device that proves its key, and shows no token.
    static func deviceProof(
        _ authentication: DeviceAuthentication,
        _ handler: @escaping @Sendable (Exchange, DeviceCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try authentication.device($0) }, handler)
    }

    /// The owner of a device with an access token, or the device itself: a request with a token is judged by that.
    static func accountOrDevice(
        _ bearer: BearerAuthentication, signedInWithin age: Int? = nil, _ authentication: DeviceAuthentication,
        account: @escaping @Sendable (Exchange, AccountCaller) async throws -> Answer,
        device: @escaping @Sendable (Exchange, DeviceCaller) async throws -> Answer
    ) -> Endpoint {
        let (byOwner, byItself) = (
            self.account(bearer, signedInWithin: age, account), deviceProof(authentication, device)
        )
        return caller({ $0.usedAuthorization }) { exchange, hasToken in
            try await (hasToken ? byOwner : byItself).answer(exchange)
        }
    }

    /// An app with the `authToken` that its backend got for one transaction, and a proof of its key.
    static func possession(
        _ authentication: DeviceAuthentication, _ tokens: PossessionTokens,
        _ handler: @escaping @Sendable (Exchange, PossessionCaller) async throws -> Answer
    ) -> Endpoint {
        caller({ try authentication.possession($0, tokens) }, handler)
    }
}

/// How a wire for backends refuses its callers.
protocol ServiceRefusal: Error {
    /// No usable access token.
    static var unauthorized: Self { get }
    /// The client may not do this.
    static var forbidden: Self { get }
    /// An error of the token endpoint.
    init(_ error: TokenError, basicUsed: Bool)
}
