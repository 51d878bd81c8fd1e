import Grants
import Persistence

/// Passkeys: registered, listed, and used to sign in.
struct PasskeyModule: Module {
    let factor: PasskeyFactor
    let passkeys: Passkeys
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        let store = PasskeyStore(shared.database)
        factor = PasskeyFactor(passkeys: store, keyring: shared.keyring)
        passkeys = Passkeys(store: store, limiter: shared.limiter, keyring: shared.keyring, clock: shared.clock)
    }

    var grants: [any Grant] { [SignInGrant(factor, shared.signIn, issuer: shared.issuer)] }

    func routes(_ front: Front) -> [Route] {
        PasskeyRoutes(
            passkeys: passkeys, proofs: shared.proofs, bearer: shared.bearer, forms: shared.sentForms
        ).routes
    }
}
