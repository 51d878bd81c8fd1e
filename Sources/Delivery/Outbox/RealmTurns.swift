import Persistence

/// The state of the turns in one channel: the realm that was served last, and the realms of the messages in hand.
struct RealmTurns: Sendable {
    /// The next turn is that of the realm that follows. Begins anywhere, so that nodes do not walk in step.
    private(set) var last = UUIDValue.random()
    /// One entry for each message in hand.
    private(set) var held: [(realm: UUIDValue, registers: Bool)] = []

    /// Messages were taken, in the order of their turns.
    mutating func take(_ messages: [LeasedMessage]) {
        last = messages.last?.realm ?? last
        held += messages.map { ($0.realm, $0.isRegistration) }
    }

    /// A message is out of hand.
    mutating func finish(_ message: LeasedMessage) {
        let index = held.firstIndex { $0.realm == message.realm && $0.registers == message.isRegistration }
        if let index { held.remove(at: index) }
    }
}
