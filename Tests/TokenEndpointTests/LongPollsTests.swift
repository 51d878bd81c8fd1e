import Persistence
import Testing

@testable import TokenEndpoint

/// Waits end for a reason, and for each reason at once.
@Suite struct LongPollsTests {
    private let room = LongPolls(places: 2)
    private let topic = WaitTopic(.user, .random(), realm: .random())

    private func wait(since mark: LongPolls.Mark, _ end: ConnectionEnd? = nil) -> Task<LongPolls.Outcome, Never> {
        Task { [room, topic] in await room.wait(for: topic, since: mark, until: .now + .seconds(60), end) }
    }

    @Test func aWakeUpEndsTheWaitsOfItsTopicAlone() async {
        #expect(room.enter())
        defer { room.leave() }
        let waiting = wait(since: room.mark)
        let deadline = ContinuousClock.now + .milliseconds(1)
        let other = WaitTopic(.transaction, topic.id, realm: topic.realm)
        let overdue = await room.wait(for: other, since: room.mark, until: deadline, nil)
        #expect(overdue == .over)
        room.wake(topic)
        #expect(await waiting.value == .woken)
    }

    @Test func aChangeBetweenLookAndWaitIsNotLost() async {
        #expect(room.enter())
        defer { room.leave() }
        let mark = room.mark
        room.wake(topic)
        #expect(await wait(since: mark).value == .woken)
        #expect(await room.wait(for: topic, since: room.mark, until: .now, nil) == .over)
    }

    @Test func aReconnectMakesEveryWaiterLook() async {
        #expect(room.enter())
        defer { room.leave() }
        let mark = room.mark
        let waiting = wait(since: mark)
        room.wakeAll()
        #expect(await waiting.value == .unsure)
        #expect(await wait(since: mark).value == .unsure, "and who looked before")
    }

    @Test func aConnectionThatEndsIsNotWaitedFor() async {
        #expect(room.enter())
        defer { room.leave() }
        let end = ConnectionEnd()
        let waiting = wait(since: room.mark, end)
        end.signal()
        #expect(await waiting.value == .over)
        #expect(await wait(since: room.mark, end).value == .over, "nor a further request of it")
    }

    @Test func placesAreBounded() {
        #expect(room.enter() && room.enter() && !room.enter())
        room.leave()
        #expect(room.enter() && !room.enter())
        #expect(room.occupied == 2)
    }

    @Test func whoWasWokenLooksBeforeWhoComes() {
        var line = PollQueue()
        let taken = (0...PollQueue.pollsAtOnce).map { _ in line.takesTurn() }
        #expect(taken == Array(repeating: true, count: PollQueue.pollsAtOnce) + [false])
        line.append(1, isUrgent: false)
        line.append(2, isUrgent: false)
        line.append(3, isUrgent: true)
        let order = (0..<4).map { _ in line.next() }
        #expect(order == [3, 1, 2, nil])
        let again = (0..<2).map { _ in line.takesTurn() }
        #expect(again == [true, false])
    }

    @Test func aTurnThatDoesNotComeInTimeIsRefused() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let gates = (0..<PollQueue.pollsAtOnce).map { _ in AsyncStream.makeStream(of: Void.self) }
        let looks = gates.map { gate in
            Task { [room] in
                try await room.inTurn(isUrgent: false, until: .now + .seconds(60), nil) {
                    begin.yield()
                    for await _ in gate.stream {}
                }
            }
        }
        var count = 0
        for await _ in begun {
            count += 1
            if count == looks.count { break }
        }
        await #expect(throws: StoreError.unavailable(.poolExhausted)) {
            try await room.inTurn(isUrgent: true, until: .now, nil) {}
        }
        for gate in gates { gate.continuation.finish() }
        for look in looks { try await look.value }
        #expect(try await room.inTurn(isUrgent: false, until: .now, nil) { 7 } == 7, "the turns are free again")
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
