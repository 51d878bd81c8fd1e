import Grants
import Persistence
import ServiceLifecycle

/// Tokens, whichever way they were obtained: renewed, inspected, revoked; and how the realm describes itself. The two
/// grants without a sign-in are here.
struct TokenModule: Module {
    let refresh: RefreshGrant
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        refresh = RefreshGrant(
            sessions: shared.sessions, issuer: shared.issuer, limiter: shared.limiter, keyring: shared.keyring,
            observe: shared.metrics.count)
    }

    var grants: [any Grant] {
        [
            refresh,
            ClientCredentialsGrant(accounts: shared.accounts, issuer: shared.issuer, limiter: shared.limiter),
        ]
    }

    func routes(_ front: Front) -> [Route] {
        let revoker = TokenRevoker(
            verifier: shared.verifier, sessions: shared.sessions, accounts: shared.accounts,
            addresses: shared.addressTokens, keyring: shared.keyring)
        return TokenRoutes(service: front.service, metrics: shared.metrics).routes
            + IntrospectionRoutes(
                clients: shared.clients, verifier: shared.verifier,
                refreshTokens: RefreshTokenVerifier(keyring: shared.keyring, sessions: shared.sessions),
                signingKeys: shared.signingKeys, databaseClock: shared.databaseClock, clock: shared.clock
            ).routes
            + RevocationRoutes(clients: shared.clients, revoker: revoker, clock: shared.clock).routes
            + DiscoveryRoutes(service: front.service, signingKeys: shared.signingKeys, clock: shared.clock).routes
            + AppInfoRoutes().routes
            + AssociationRoutes().routes
    }

    func services(in cluster: Database.Part) -> [any Service] {
        [
            SigningKeyRotation(
                keys: SigningKeys(store: SigningKeyStore(cluster.database), keyring: shared.keyring),
                logger: shared.logger)
        ]
    }
}
