/// When a mail that was not taken is tried again.
enum RetrySchedule {
    /// 5 s, doubled with each attempt up to 15 min. If it is the server that is not well, at most 30 s, because then
    /// ``SendingPace`` spares it and a code must not wait longer than the server does.
    static func pause(afterAttempt attempt: Int, _ failure: DeliveryFailure) -> Duration {
        let pause = Duration.seconds(5 << min(max(attempt, 1) - 1, 8))
        return min(pause, failure.concernsServer ? .seconds(30) : .seconds(900))
    }

    /// 1 s, doubled with each attempt up to 30 s: somebody waits for the message.
    static func pause(ofMessageAfterAttempt attempt: Int) -> Duration {
        min(.seconds(1 << min(max(attempt, 1) - 1, 5)), .seconds(30))
    }

    /// After an answer of a provider that stayed away. The second try carries the same id, so that a provider that
    /// knows ids does not send twice.
    static let pauseOfMessageAfterDoubt = Duration.seconds(5)

    /// After an answer that stayed away, the server gets time to deliver before there is a second copy.
    static let pauseAfterDoubt = Duration.seconds(60)
}
