import Grants
import Persistence
import ServiceLifecycle

/// Sign-ins by a message: a code or a link. An app asks for one, a worker finds out whom it is for, the message is
/// queued, and what it brings is redeemed.
struct MessageSignInModule: Module {
    let codeFactor: OTPFactor
    let linkFactor: MagicLinkFactor
    let requests: SignInRequests
    let code: SentCode
    let registration: SentCode
    let link: SentLink
    let confirmation: MagicLinkConfirmation
    private let shared: SharedParts
    private let worker: ClusterSignals

    init(_ shared: SharedParts) {
        self.shared = shared
        let worker = ClusterSignals(shared.database)
        self.worker = worker
        let links = MagicLinkStore(shared.database)
        let store = SignInRequestStore(shared.database)
        codeFactor = OTPFactor(
            codes: CodeStore(shared.database), keyring: shared.keyring, observe: shared.metrics.count)
        linkFactor = MagicLinkFactor(links: links, keyring: shared.keyring)
        code = SentCode(.otp, requests: store, keyring: shared.keyring)
        registration = SentCode(.register, requests: store, keyring: shared.keyring)
        link = SentLink(requests: store, keyring: shared.keyring)
        let deadline = shared.configuration.uniformDeadline
        requests = SignInRequests(
            limiter: shared.limiter, turns: shared.turns, keyring: shared.keyring,
            wakeWorker: { worker.signal(after: deadline) })
        confirmation = MagicLinkConfirmation(links: links, limiter: shared.limiter, turns: shared.turns)
    }

    var grants: [any Grant] {
        [
            SignInGrant(codeFactor, shared.signIn, issuer: shared.issuer),
            SignInGrant(linkFactor, shared.signIn, issuer: shared.issuer),
        ]
    }

    func routes(_ front: Front) -> [Route] {
        SignInRequestRoutes(
            requests: requests, proofs: shared.proofs, code: code, registration: registration, link: link
        ).routes
    }

    func services(in cluster: Database.Part) -> [any Service] {
        [
            SignInRequestService(
                worker: SignInRequestWorker(
                    requests: SignInRequestStore(cluster.database), factors: [code, registration, link],
                    wake: worker[cluster], age: shared.configuration.uniformDeadline.duration,
                    wakeDelivery: shared.delivery[cluster].signal, logger: shared.logger)),
            TestCodeService(
                worker: TestCodeWorker(
                    store: TestIdentityStore(cluster.database), keyring: shared.keyring, logger: shared.logger)),
        ]
    }
}
