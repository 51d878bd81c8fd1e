import Synchronization

@testable import Delivery

/// A transport that the test opens and shuts: it hands mails on, then holds each answer back until it is let go.
final class GatedTransport: MailTransport {
    private struct State {
        var held: [CheckedContinuation<Void, Never>] = []
        var isOpen = false
        var inHand = 0
        var mostInHand = 0
        var mails: [OutgoingMail] = []
        var deadlines: [ContinuousClock.Instant] = []
    }

    private let state = Mutex(State())
    private let next: (any MailTransport)?
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    /// - Parameter next: Where mails go before the answer is held back; nowhere if `nil`.
    init(inFrontOf next: (any MailTransport)? = nil) {
        self.next = next
        (arrivals, arrival) = AsyncStream.makeStream()
    }

    var mostInHand: Int { state.withLock(\.mostInHand) }
    var mails: [OutgoingMail] { state.withLock(\.mails) }
    var deadlines: [ContinuousClock.Instant] { state.withLock(\.deadlines) }

    /// Waits until so many mails have come to the gate.
    func waitForMails(_ count: Int) async {
        var seen = 0
        for await _ in arrivals {
            seen += 1
            if seen == count { return }
        }
    }

    /// Lets go what is held, and whatever comes later.
    func open() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [] }
            return state.held
        }
        held.forEach { $0.resume() }
    }

    func send(_ mail: OutgoingMail, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        state.withLock { state in
            state.inHand += 1
            state.mostInHand = max(state.mostInHand, state.inHand)
            state.mails.append(mail)
            state.deadlines.append(deadline)
        }
        let outcome = await next?.send(mail, before: deadline) ?? .accepted
        arrival.yield()
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.held.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
        state.withLock { $0.inHand -= 1 }
        return outcome
    }

    func rest() async {
        await next?.rest()
    }
}
