import Grants
import Persistence
import ServiceLifecycle

/// Approvals of sign-ins on trusted devices (CIBA): a client asks, a worker finds out whom it means, a device answers,
/// the client polls.
struct ApprovalModule: Module {
    let store: ApprovalStore
    let grant: ApprovalGrant
    let requests: ApprovalRequests
    private let shared: SharedParts
    private let worker: ClusterSignals

    init(_ shared: SharedParts) {
        self.shared = shared
        let worker = ClusterSignals(shared.database)
        self.worker = worker
        store = ApprovalStore(shared.database)
        grant = ApprovalGrant(store: store, shared.signIn, issuer: shared.issuer)
        let deadline = shared.configuration.uniformDeadline
        requests = ApprovalRequests(
            store: store, limiter: shared.limiter, keyring: shared.keyring,
            wakeWorker: { worker.signal(after: deadline) })
    }

    var grants: [any Grant] { [grant] }

    func routes(_ front: Front) -> [Route] {
        ApprovalRequestRoutes(requests: requests, clients: shared.clients, proofs: shared.proofs).routes
            + ApprovalRoutes(
                approvals: Approvals(store: store, limiter: shared.limiter), authentication: shared.devices,
                waiting: shared.waiting
            ).routes
    }

    func services(in cluster: Database.Part) -> [any Service] {
        [
            ApprovalService(
                worker: ApprovalWorker(
                    store: ApprovalStore(cluster.database), wake: worker[cluster],
                    age: shared.configuration.uniformDeadline.duration,
                    wakeDelivery: shared.delivery[cluster].signal, logger: shared.logger))
        ]
    }
}
