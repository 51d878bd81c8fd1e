import Grants
import Persistence

/// Proofs of phone numbers: started by backends, made by apps, and redeemed for a sign-in.
struct PossessionModule: Module {
    let steps: PossessionSteps
    private let tokens: PossessionTokens
    private let backend: Possessions
    private let factor: PossessionFactor
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        let store = PossessionStore(shared.database)
        tokens = PossessionTokens(
            keys: shared.signingKeys, nonces: DPoPNonces(keyring: shared.keyring), databaseClock: shared.databaseClock)
        backend = Possessions(store: store, tokens: tokens, limiter: shared.limiter, keyring: shared.keyring)
        steps = PossessionSteps(
            store: store,
            signals: PossessionSignals(
                hooks: HookTokens(keys: shared.signingKeys, realms: shared.realms, clock: shared.clock),
                keyring: shared.keyring, post: shared.above.postSignal),
            limiter: shared.limiter, turns: shared.turns, keyring: shared.keyring,
            testCodes: TestNumberCodes(store: TestIdentityStore(shared.database), keyring: shared.keyring),
            wakeDelivery: shared.wakeDelivery)
        factor = PossessionFactor(store: store, tokens: tokens)
    }

    var grants: [any Grant] { [SignInGrant(factor, shared.signIn, issuer: shared.issuer)] }

    func routes(_ front: Front) -> [Route] {
        ProveRoutes(possessions: backend, service: front.service, bearer: shared.bearer).routes
            + PossessionRoutes(
                steps: steps, tokens: tokens, authentication: shared.devices, room: shared.waiting, limit: shared.limit
            ).routes
    }
}
