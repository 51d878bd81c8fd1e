import Grants
import Logging
import Persistence
import ServiceLifecycle

/// What wakes the workers of one cluster.
struct Wakes: Sendable {
    let worker = WakeSignal()
    let delivery = WakeSignal()
    let approvals = WakeSignal()
}

/// What the work beside requests needs.
struct Background {
    let database: Database
    let realms: RealmDirectory
    let waiting: LongPolls
    let databaseClock: DatabaseClock
    let factors: [any SentFactor]
    let signingKeys: SigningKeys
    let wakes: Wakes
    /// When answers that depend on an account have left.
    let answered: UniformDeadline
    let metrics: Metrics
    let keyring: Keyring
    let parts: ServerParts
    let clock: @Sendable () -> Double
    let logger: Logger
}

extension Server {
    /// What works beside requests, in one cluster: its queues, its rows and its configuration. In start order.
    static func background(_ part: Database.Part, _ common: Background) throws -> [any Service] {
        let database = part.database
        let (realms, keyring, clock, logger) = (common.realms, common.keyring, common.clock, common.logger)
        let (metrics, wakeDelivery) = (common.metrics, common.wakes.delivery)
        let signingKeys = common.signingKeys
        let delivery = try common.parts.delivery?(
            DeliveryParts(
                database: database, hookTokens: HookTokens(keys: signingKeys, realms: realms, clock: clock),
                wakes: wakeDelivery, count: { metrics.countMessage(channel: $0, outcome: $1) }))
        // Delivery stops after the worker that feeds it and before the database that it writes to.
        return [delivery].compactMap(\.self) + [
            ConfigurationWatch(
                database: common.database, part: part, realms: realms.clusters[part.index], waiting: common.waiting,
                databaseClock: common.databaseClock, logger: logger
            )
            .listener(clock: common.databaseClock.machine),
            SignInRequestService(
                worker: SignInRequestWorker(
                    requests: SignInRequestStore(database), factors: common.factors, wake: common.wakes.worker,
                    age: common.answered.duration, wakeDelivery: wakeDelivery.signal, logger: logger)),
            ApprovalService(
                worker: ApprovalWorker(
                    store: ApprovalStore(database), wake: common.wakes.approvals,
                    age: common.answered.duration, wakeDelivery: wakeDelivery.signal, logger: logger)),
            TestCodeService(
                worker: TestCodeWorker(store: TestIdentityStore(database), keyring: keyring, logger: logger)),
            Sweeper(store: MaintenanceStore(database), metrics: metrics, logger: logger),
            SigningKeyRotation(
                keys: SigningKeys(store: SigningKeyStore(database), keyring: keyring), logger: logger),
            LogoutTokenService(
                tokens: LogoutTokens(
                    LogoutTokenStore(database), realms: realms, signingKeys: signingKeys,
                    post: common.parts.postLogoutToken, clock: clock, logger: logger)),
            EventService(
                sender: EventSender(
                    WebhookStore(database),
                    tokens: EventTokens(realms: realms, signingKeys: signingKeys, clock: clock),
                    post: common.parts.postEvent, count: { metrics.countEvent(outcome: $0) }, logger: logger),
                executor: common.parts.eventExecutor),
        ]
    }
}
