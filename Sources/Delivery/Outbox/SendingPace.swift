/// How many mails may be in hand at once: all that are allowed while the mail server is well, and after a failure that
/// every mail would meet, none for a while and then one at a time until the server is well again.
struct SendingPace {
    private let concurrency: Int
    private var inHand = 0
    private var failures = 0
    private var pausedUntil: ContinuousClock.Instant?

    static let longestPause = Duration.seconds(30)

    init(concurrency: Int) {
        self.concurrency = max(concurrency, 1)
    }

    /// True while no mail is in hand.
    var isIdle: Bool { inHand == 0 }

    /// How many more mails may be taken now.
    func allowance(at now: ContinuousClock.Instant) -> Int {
        if let pausedUntil, now < pausedUntil { return 0 }
        return max((failures == 0 ? concurrency : 1) - inHand, 0)
    }

    /// `count` mails were taken.
    mutating func take(_ count: Int) {
        inHand += count
    }

    /// One mail is out of hand.
    mutating func finish(_ outcome: DeliveryOutcome, at now: ContinuousClock.Instant) {
        inHand -= 1
        switch outcome {
        case .temporary(let failure) where failure.concernsServer:
            // Those sent at the same time fail at the same time: that is one failure.
            if let pausedUntil, now < pausedUntil { return }
            failures = min(failures + 1, 6)
            pausedUntil = now + min(.seconds(1 << (failures - 1)), Self.longestPause)
        case .temporary(.cancelled), .temporary(.payload), .permanent(.payload), .permanent(.recipient),
            .permanent(.expired):
            break  // the server was not asked
        case .accepted, .inDoubt, .temporary, .permanent:
            failures = 0
            pausedUntil = nil
        }
    }
}
