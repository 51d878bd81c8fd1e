import Grants
import Persistence

/// What users do with their own accounts by an access token: profile, addresses, sessions, second factor.
struct AccountModule: Module {
    let identifiers: Identifiers
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        identifiers = Identifiers(
            store: IdentifierStore(shared.database), limiter: shared.limiter, keyring: shared.keyring,
            wakeDelivery: shared.wakeDelivery)
    }

    func routes(_ front: Front) -> [Route] {
        UserInfoRoutes(bearer: shared.bearer, identifiers: identifiers).routes
            + SessionRoutes(sessions: OwnSessions(OwnSessionStore(shared.database)), bearer: shared.bearer).routes
            + AccountRoutes(account: OwnAccount(AccountStore(shared.database)), bearer: shared.bearer).routes
            + IdentifierRoutes(identifiers: identifiers, bearer: shared.bearer, forms: shared.sentForms).routes
            + TOTPRoutes(
                secondFactors: SecondFactors(
                    store: SecondFactorStore(shared.database), keyring: shared.keyring), bearer: shared.bearer
            ).routes
    }
}
