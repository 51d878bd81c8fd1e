import Grants
import Persistence

/// Proofs of phone numbers, composed.
struct PossessionParts {
    let tokens: PossessionTokens
    let backend: Possessions
    let steps: PossessionSteps
    let factor: PossessionFactor

    init(
        _ database: Database, signingKeys: SigningKeys, realms: RealmDirectory, limiter: RateLimiter, turns: Turns,
        keyring: Keyring, post: @escaping PossessionSignals.Post, wakeDelivery: @escaping @Sendable () -> Void,
        databaseClock: DatabaseClock
    ) {
        let store = PossessionStore(database)
        tokens = PossessionTokens(keys: signingKeys, nonces: DPoPNonces(keyring: keyring), databaseClock: databaseClock)
        backend = Possessions(store: store, tokens: tokens, limiter: limiter, keyring: keyring)
        steps = PossessionSteps(
            store: store,
            signals: PossessionSignals(
                hooks: HookTokens(keys: signingKeys, realms: realms, clock: { databaseClock.now }), keyring: keyring,
                post: post),
            limiter: limiter, turns: turns, keyring: keyring,
            testCodes: TestNumberCodes(store: TestIdentityStore(database), keyring: keyring), wakeDelivery: wakeDelivery
        )
        factor = PossessionFactor(store: store, tokens: tokens)
    }
}
