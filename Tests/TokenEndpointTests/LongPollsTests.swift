import Persistence
import Testing

@testable import TokenEndpoint

/// Waits end for a reason, and for each reason at once.
@Suite struct LongPollsTests {
    private let longPolls = LongPolls(places: 2)
    private let topic = WaitTopic(.user, .random(), realm: .random())

    private func wait(since mark: LongPolls.Mark, _ end: ConnectionEnd? = nil) -> Task<LongPolls.Outcome, Never> {
        Task { [longPolls, topic] in await longPolls.wait(for: topic, since: mark, until: .now + .seconds(60), end) }
    }

    @Test func aWakeUpEndsTheWaitsOfItsTopicAlone() async {
        #expect(longPolls.enter())
        defer { longPolls.leave() }
        let waiting = wait(since: longPolls.mark)
        let deadline = ContinuousClock.now + .milliseconds(1)
        let other = WaitTopic(.transaction, topic.id, realm: topic.realm)
        let overdue = await longPolls.wait(for: other, since: longPolls.mark, until: deadline, nil)
        #expect(overdue == .over)
        longPolls.wake(topic)
        #expect(await waiting.value == .woken)
    }

    @Test func aChangeBetweenLookAndWaitIsNotLost() async {
        #expect(longPolls.enter())
        defer { longPolls.leave() }
        let mark = longPolls.mark
        longPolls.wake(topic)
        #expect(await wait(since: mark).value == .woken)
        #expect(await longPolls.wait(for: topic, since: longPolls.mark, until: .now, nil) == .over)
    }

    @Test func aReconnectMakesEveryWaiterLook() async {
        #expect(longPolls.enter())
        defer { longPolls.leave() }
        let mark = longPolls.mark
        let waiting = wait(since: mark)
        longPolls.wakeAll()
        #expect(await waiting.value == .unsure)
        #expect(await wait(since: mark).value == .unsure, "and who polled before")
    }

    @Test func aConnectionThatEndsIsNotWaitedFor() async {
        #expect(longPolls.enter())
        defer { longPolls.leave() }
        let end = ConnectionEnd()
        let waiting = wait(since: longPolls.mark, end)
        end.signal()
        #expect(await waiting.value == .over)
        #expect(await wait(since: longPolls.mark, end).value == .over, "nor a further request of it")
    }

    @Test func placesAreBounded() {
        #expect(longPolls.enter() && longPolls.enter() && !longPolls.enter())
        longPolls.leave()
        #expect(longPolls.enter() && !longPolls.enter())
        #expect(longPolls.occupied == 2)
    }

    @Test func whoWasWokenLooksBeforeWhoComes() {
        var queue = PollQueue()
        let taken = (0...PollQueue.pollsAtOnce).map { _ in queue.takesTurn() }
        #expect(taken == Array(repeating: true, count: PollQueue.pollsAtOnce) + [false])
        queue.append(1, isUrgent: false)
        queue.append(2, isUrgent: false)
        queue.append(3, isUrgent: true)
        let order = (0..<4).map { _ in queue.next() }
        #expect(order == [3, 1, 2, nil])
        let again = (0..<2).map { _ in queue.takesTurn() }
        #expect(again == [true, false])
    }

    @Test func aTurnThatDoesNotComeInTimeIsRefused() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let gates = (0..<PollQueue.pollsAtOnce).map { _ in AsyncStream.makeStream(of: Void.self) }
        let polls = gates.map { gate in
            Task { [longPolls] in
                try await longPolls.inTurn(isUrgent: false, until: .now + .seconds(60), nil) {
                    begin.yield()
                    for await _ in gate.stream {}
                }
            }
        }
        var count = 0
        for await _ in begun {
            count += 1
            if count == polls.count { break }
        }
        await #expect(throws: StoreError.unavailable(.poolExhausted)) {
            try await longPolls.inTurn(isUrgent: true, until: .now, nil) {}
        }
        for gate in gates { gate.continuation.finish() }
        for poll in polls { try await poll.value }
        #expect(try await longPolls.inTurn(isUrgent: false, until: .now, nil) { 7 } == 7, "the turns are free again")
    }

    @Test func aNotificationNamesATopic() {
        let text = "\(topic.realm) user \(topic.id)"
        #expect(WaitTopic(payload: text) == topic)
        for payload in ["", text + " x", text.replacing("user", with: "cat"), "x user y"] {
            #expect(WaitTopic(payload: payload) == nil)
        }
    }

    @Test func tenThousandWaitAndAreWokenTogether() async {
        let large = LongPolls(places: 10_000)
        let waiting = (0..<10_000).map { _ in
            _ = large.enter()
            let mark = large.mark
            return Task { [topic] in await large.wait(for: topic, since: mark, until: .now + .seconds(60), nil) }
        }
        large.wake(topic)
        for task in waiting { #expect(await task.value == .woken) }
    }
}
