/// At most so many mails in any second, as the mail server counts.
///
/// A place is held while a mail is in hand and for a second after it. A mail reaches the server while it is in hand, so
/// all that reach it within one second hold places at the end of that second, however long each of them was under way.
struct SendingRate {
    private let mailsPerSecond: Int
    private var inHand = 0
    /// When the places of mails out of hand are free again, the earliest first.
    private var returns: [ContinuousClock.Instant] = []

    init(mailsPerSecond: Int) {
        self.mailsPerSecond = max(mailsPerSecond, 1)
    }

    /// How many more mails may be taken now.
    mutating func room(at now: ContinuousClock.Instant) -> Int {
        returns.removeSubrange(..<(returns.firstIndex { $0 > now } ?? returns.endIndex))
        return max(mailsPerSecond - inHand - returns.count, 0)
    }

    /// When there is room again; `nil` if there is, or if a mail in hand has to be finished first.
    func nextRoom(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard inHand + returns.count >= mailsPerSecond, let next = returns.first, next > now else { return nil }
        return next
    }

    /// `count` mails were taken.
    mutating func take(_ count: Int) {
        inHand += count
    }

    /// One mail is out of hand. One that was not sent leaves its place to another at once.
    mutating func finish(wasSent: Bool, at now: ContinuousClock.Instant) {
        inHand -= 1
        if wasSent { returns.append(now + .seconds(1)) }
    }
}
