import Grants
import HTTPTypes
import Persistence

/// A client that authenticated itself, and its form.
struct CallingClient: Sendable {
    let client: Client
    let form: FormParameters

    fileprivate init(client: Client, form: FormParameters) {
        self.client = client
        self.form = form
    }
}

/// A client that authenticated itself, whose assertion and proof of possession are not used up yet.
struct ProvingClient: Sendable {
    let client: Client
    let form: FormParameters
    private let authenticated: ClientAuthenticator.Authenticated
    private let clients: ClientAuthenticator
    private let proofs: Proofs

    fileprivate init(
        _ authenticated: ClientAuthenticator.Authenticated, form: FormParameters, _ clients: ClientAuthenticator,
        _ proofs: Proofs
    ) {
        client = authenticated.client
        self.form = form
        self.authenticated = authenticated
        self.clients = clients
        self.proofs = proofs
    }

    /// Verifies the proof of the request, if there is one, uses up the assertion, and runs the body, which uses up the
    /// proof.
    /// - Throws: `invalid_dpop_proof`, `use_dpop_nonce`, `invalid_client`, or what the body threw.
    func acting<R>(in exchange: Exchange, _ body: (ProofUse?) async throws -> R) async throws -> R {
        let proof = try exchange.proof(by: proofs)
        return try await clients.spending(authenticated, realm: exchange.realm, source: exchange.source) {
            try await proofs.using(in: exchange.realm) { try await body(proof) }
        }
    }
}

extension ClientAuthenticator {
    /// The client of a request that it makes for itself.
    func authenticated(_ exchange: Exchange) async throws -> CallingClient {
        let (form, authenticated) = try verify(exchange)
        try await spend(authenticated, realm: exchange.realm, source: exchange.source)
        return CallingClient(client: authenticated.client, form: form)
    }

    /// The same for a request with a proof of possession: its assertion is not used up yet.
    func verified(_ exchange: Exchange, _ proofs: Proofs) throws -> ProvingClient {
        let (form, authenticated) = try verify(exchange)
        return ProvingClient(authenticated, form: form, self, proofs)
    }

    private func verify(_ exchange: Exchange) throws -> (form: FormParameters, client: Authenticated) {
        let credentials = try exchange.presentedCredentials()
        let form = try exchange.form()
        exchange.nameClient(form["client_id"] ?? credentials.clientID)
        let authenticated = try verify(
            form, credentials, realm: exchange.realm, source: exchange.source, endpoint: exchange.request.path ?? "")
        exchange.namedClient?.note(authenticated.client)
        return (form, authenticated)
    }
}
