/// How many mails may be in hand at once: all that are allowed while the mail server is well, and after a failure that
/// every mail would meet, none for a while and then one at a time until the server is well again. Never more than the
/// rate has room for.
struct SendingPace {
    private let concurrency: Int
    private var rate: SendingRate?
    private var inHand = 0
    private var failures = 0
    private var pausedUntil: ContinuousClock.Instant?

    static let longestPause = Duration.seconds(30)

    init(concurrency: Int, mailsPerSecond: Int? = nil) {
        self.concurrency = max(concurrency, 1)
        rate = mailsPerSecond.map { SendingRate(mailsPerSecond: $0) }
    }

    /// True while no mail is in hand.
    var isIdle: Bool { inHand == 0 }

    /// How many more mails may be taken now.
    mutating func allowance(at now: ContinuousClock.Instant) -> Int {
        if let pausedUntil, now < pausedUntil { return 0 }
        let hands = max((failures == 0 ? concurrency : 1) - inHand, 0)
        return min(hands, rate?.room(at: now) ?? hands)
    }

    /// When the rate has room again; `nil` if it has, or if a mail in hand has to be finished first.
    func nextRoom(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        rate?.nextRoom(at: now)
    }

    /// `count` mails were taken.
    mutating func take(_ count: Int) {
        inHand += count
        rate?.take(count)
    }

    /// One mail is out of hand.
    mutating func finish(_ outcome: DeliveryOutcome, at now: ContinuousClock.Instant) {
        inHand -= 1
        rate?.finish(wasSent: outcome.askedServer, at: now)
        switch outcome {
        case .temporary(let failure) where failure.concernsServer:
            // Those sent at the same time fail at the same time: that is one failure.
            if let pausedUntil, now < pausedUntil { return }
            failures = min(failures + 1, 6)
            pausedUntil = now + min(.seconds(1 << (failures - 1)), Self.longestPause)
        case .temporary(.cancelled): break  // the server may not have been asked
        // The server refused the sender of one realm, which does not show whether it takes other mail.
        case .temporary(.sender): break
        case _ where !outcome.askedServer: break
        case .accepted, .inDoubt, .temporary, .permanent:
            failures = 0
            pausedUntil = nil
        }
    }
}

extension DeliveryOutcome {
    /// False when the mail was found wanting, or the pre-send hook held it, before anything was said to the server.
    fileprivate var askedServer: Bool {
        switch self {
        case .temporary(.payload), .permanent(.payload), .permanent(.recipient), .permanent(.expired),
            .permanent(.denied), .temporary(.credential):
            false
        case .accepted, .inDoubt, .temporary, .permanent: true
        }
    }
}
