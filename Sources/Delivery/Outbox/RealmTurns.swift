import Persistence

/// The state of the turns: the realm that was served last, and the realms of the mails in hand.
struct MailTurns: Sendable {
    /// The next turn is that of the realm that follows. Begins anywhere, so that nodes do not walk in step.
    private(set) var last = UUIDValue.random()
    /// One entry for each mail in hand.
    private(set) var inHand: [UUIDValue] = []
    /// One entry for each registration mail in hand.
    private(set) var registering: [UUIDValue] = []

    /// Mails were taken, in the order of their turns.
    mutating func take(_ mails: [LeasedMail]) {
        last = mails.last?.realm ?? last
        inHand += mails.map(\.realm)
        registering += mails.filter(\.isRegistration).map(\.realm)
    }

    /// A mail is out of hand.
    mutating func finish(_ mail: LeasedMail) {
        if let index = inHand.firstIndex(of: mail.realm) { inHand.remove(at: index) }
        if mail.isRegistration, let index = registering.firstIndex(of: mail.realm) { registering.remove(at: index) }
    }
}
