public import Logging
public import Persistence
import Synchronization

/// Decides recorded requests for codes and links: the only place that looks whether an address has an account, out of
/// any caller's sight. Realms take turns (docs/decisions/0027).
public struct OTPWorker: Sendable {
    private let signIns: SignInStore
    private let keyring: Keyring
    private let wake: WakeSignal
    private let wakeDelivery: @Sendable () -> Void
    private let logger: Logger
    private let turn = Turn()

    /// Requests decided in one transaction.
    private static let batch: Int32 = 32
    /// The longest a request recorded by another node waits.
    private static let pollInterval = Duration.seconds(1)

    /// - Parameter wakeDelivery: called when mails were queued.
    public init(
        signIns: SignInStore, keyring: Keyring, wake: WakeSignal, wakeDelivery: @escaping @Sendable () -> Void,
        logger: Logger
    ) {
        self.signIns = signIns
        self.keyring = keyring
        self.wake = wake
        self.wakeDelivery = wakeDelivery
        self.logger = logger
    }

    /// Works until cancelled: at once when woken, and every second for what other nodes left.
    public func run() async {
        await wake.forEach(atLeastEvery: Self.pollInterval) {
            do {
                while try await decideBatch() == Int(Self.batch) {}
            } catch StoreError.cancelled {
                // The server stops; what is pending waits for the next one.
            } catch {
                logger.warning(
                    "requests for codes wait: the database is not available", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Decides one batch. - Returns: how many requests it held.
    func decideBatch() async throws(StoreError) -> Int {
        let keyring = keyring
        let (decided, mails, last) = try await signIns.decide(
            limit: Self.batch, after: turn.last.withLock { $0 },
            draft: { (request) throws(StoreError) in try Self.draft(request, keyring: keyring) },
            link: { (request, user, origin) throws(StoreError) in
                try MagicLink.draft(
                    request, user: user, origin: origin, originHost: Self.host(of: request.publicOrigin), keyring)
            })
        turn.last.withLock { $0 = last }
        if mails > 0 { wakeDelivery() }
        return decided
    }

    /// The realm whose requests were decided last; the next batch begins with the realm after it. Starts at random, so
    /// that nodes do not walk in step.
    private final class Turn: Sendable {
        let last = Mutex(UUIDValue.random())
    }

    private static func draft(
        _ request: SignInStore.PendingRequest, keyring: Keyring
    ) throws(StoreError) -> SignInStore.CodeDraft {
        let code = OneTimeCode.random(digits: Int(request.otpDigits))
        let mailID = UUIDValue.random()
        let mail = MailPayload(
            realmName: request.displayName, originHost: host(of: request.publicOrigin),
            content: .otp(code: code, minutes: Int(request.otpLifetime + 59) / 60))
        guard let payload = try? mail.sealed(under: keyring, realm: request.realm, mail: mailID) else {
            throw .malformedResult
        }
        return SignInStore.CodeDraft(
            codeID: .random(), salt: randomBytes(16),
            keyed: OneTimeCode.keyed(code, realm: request.realm, emailKey: request.emailKey, under: keyring.newest),
            mailID: mailID, payload: payload)
    }

    /// The host of `https://host[:port]`.
    private static func host(of origin: String) -> String {
        let authority = origin.split(separator: "/").last ?? ""
        return String(authority.prefix { $0 != ":" })
    }
}
