import Persistence

/// One channel at a sender: whose turn it is, and how many messages it may take.
///
/// All realms share one mail server. While the mail server fails, mails of all realms wait. Each realm has its own
/// providers, and may have its own sender address. While a provider fails, or the mail server refuses the address, this
/// realm has one message of the channel in hand, and messages of other realms are sent as before.
struct Lane: Sendable {
    let channel: Channel
    private var turns = RealmTurns()
    private var pace: SendingPace
    private var troubled: Set<UUIDValue> = []

    init(_ channel: Channel, concurrency: Int, mailsPerSecond: Int? = nil) {
        self.channel = channel
        pace = SendingPace(concurrency: concurrency, mailsPerSecond: mailsPerSecond)
    }

    /// True while no message is in hand.
    var isIdle: Bool { pace.isIdle }

    /// What to ask the outbox for; `nil` when nothing may be taken now.
    mutating func wish(share: Int, at now: ContinuousClock.Instant) -> OutboxStore.Wish? {
        let allowance = pace.allowance(at: now)
        guard allowance > 0 else { return nil }
        let occupied = troubled.flatMap { realm in
            Array(repeating: (realm: realm, registers: false), count: max(share - 1, 0))
        }
        return OutboxStore.Wish(
            channel: channel, limit: allowance, after: turns.last, held: turns.held + occupied)
    }

    /// When the rate has room again; see ``SendingPace``.
    func nextRoom(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? { pace.nextRoom(at: now) }

    /// Messages of several channels were taken.
    mutating func take(_ messages: [LeasedMessage]) {
        let own = messages.filter { $0.channel == channel }
        pace.take(own.count)
        turns.take(own)
    }

    /// A message of this channel is out of hand.
    mutating func finish(_ message: LeasedMessage, _ outcome: DeliveryOutcome, at now: ContinuousClock.Instant) {
        turns.finish(message)
        pace.finish(channel == .email ? outcome : .accepted, at: now)
        switch outcome {
        case .accepted: troubled.remove(message.realm)
        case .temporary(let failure) where failure.concernsSender: troubled.insert(message.realm)
        case .temporary(let failure) where failure.concernsServer && channel != .email: troubled.insert(message.realm)
        case .inDoubt where channel != .email: troubled.insert(message.realm)
        case .inDoubt, .temporary, .permanent: break
        }
    }
}
