import Grants
import Persistence

/// Cotter's wires: authorizations and approvals in other words. It stores nothing of its own but its codes.
struct CotterModule: Module {
    private let shared: SharedParts
    private let authorization: AuthorizationModule
    private let approvals: ApprovalModule
    private let tokens: TokenModule

    init(_ shared: SharedParts, authorization: AuthorizationModule, approvals: ApprovalModule, tokens: TokenModule) {
        self.shared = shared
        self.authorization = authorization
        self.approvals = approvals
        self.tokens = tokens
    }

    func routes(_ front: Front) -> [Route] {
        let countMissingKey = shared.transport.countMissingAPIKey
        return CotterRoutes(
            authorization: authorization.endpoint(front),
            identities: CotterIdentities(
                codes: IdentityCodeStore(shared.database), refreshes: tokens.refresh, issuer: shared.issuer,
                limiter: shared.limiter, databaseClock: shared.databaseClock),
            countMissingKey: countMissingKey
        ).routes
            + CotterEventRoutes(
                events: CotterEvents(
                    requests: approvals.requests, store: approvals.store, grant: approvals.grant,
                    issuer: shared.issuer),
                keys: APIKeys(databaseClock: shared.databaseClock, countMissingKey: countMissingKey)
            ).routes
    }
}
