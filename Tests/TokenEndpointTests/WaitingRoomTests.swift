import Persistence
import Testing

@testable import TokenEndpoint

/// Waits end for a reason, and for each reason at once.
@Suite struct WaitingRoomTests {
    private let room = WaitingRoom(places: 2)
    private let topic = WaitTopic(.user, .random(), realm: .random())

    private func wait(since mark: WaitingRoom.Mark, _ end: ConnectionEnd? = nil) -> Task<WaitingRoom.Outcome, Never> {
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
        #expect(await waiting.value == .woken)
        #expect(await wait(since: mark).value == .woken, "and who looked before")
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

    @Test func aNotificationNamesATopic() {
        let text = "\(topic.realm) user \(topic.id)"
        #expect(WaitTopic(payload: text) == topic)
        for payload in ["", text + " x", text.replacing("user", with: "cat"), "x user y"] {
            #expect(WaitTopic(payload: payload) == nil)
        }
    }

    @Test func tenThousandWaitAndAreWokenTogether() async {
        let large = WaitingRoom(places: 10_000)
        let waiting = (0..<10_000).map { _ in
            _ = large.enter()
            let mark = large.mark
            return Task { [topic] in await large.wait(for: topic, since: mark, until: .now + .seconds(60), nil) }
        }
        large.wake(topic)
        for task in waiting { #expect(await task.value == .woken) }
    }
}
