import Testing

@testable import Persistence

@Suite("Pool state machine")
struct PoolStateMachineTests {
    typealias Machine = PoolStateMachine<Int, String>
    let start = ContinuousClock.now

    func running(_ capacity: Int, maximumWaiters: Int = 2, connections: ClosedRange<Int>? = nil) -> Machine {
        var machine = Machine(
            .init(capacity: capacity, maximumWaiters: maximumWaiters, checkoutTimeout: .milliseconds(250)))
        _ = machine.start(now: start)
        for connection in connections ?? 1...capacity { _ = machine.connected(connection, now: start) }
        return machine
    }

    func described(_ actions: [Machine.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .resume(let waiter, let connection): "resume \(waiter) with \(connection)"
            case .fail(let waiter, let reason): "fail \(waiter): \(reason)"
            case .connect(let count): "connect \(count)"
            case .wake(let instant): "wake in \(instant - start)"
            case .close(let connection): "close \(connection)"
            case .finished: "finished"
            }
        }
    }

    func lent(_ machine: inout Machine) -> Int? {
        if case .lend(let connection) = machine.checkout(for: .server) { connection } else { nil }
    }

    @Test func `it opens one connection first and the rest when that one stands`() {
        var machine = Machine(.init(capacity: 4, maximumWaiters: 2, checkoutTimeout: .milliseconds(250)))
        #expect(described(machine.start(now: start)) == ["connect 1"])
        #expect(described(machine.connected(1, now: start)) == ["connect 3"])
        #expect(machine.connecting == 3)
    }

    @Test func `the connection returned last is lent first`() {
        var machine = running(2)
        let first = lent(&machine)
        let second = lent(&machine)
        _ = machine.checkin(first ?? 0, of: .server, isReusable: true, now: start)
        _ = machine.checkin(second ?? 0, of: .server, isReusable: true, now: start)
        #expect(lent(&machine) == second)
    }

    @Test func `a caller who waits gets the next connection before any newcomer`() {
        var machine = running(1)
        let connection = lent(&machine)
        #expect(described(machine.enqueue("a", for: .server, number: 1, now: start)) == ["wake in 0.25 seconds"])
        #expect(
            described(machine.checkin(connection ?? 0, of: .server, isReusable: true, now: start)) == [
                "resume a with 1"
            ])
        #expect(machine.lent == 1)
        guard case .wait = machine.checkout(for: .server) else {
            Issue.record("the connection was lent twice")
            return
        }
    }

    @Test func `callers beyond the limit are refused at once`() {
        var machine = running(1, maximumWaiters: 1)
        _ = lent(&machine)
        _ = machine.enqueue("a", for: .server, number: 1, now: start)
        guard case .refuse(.tooManyWaiters) = machine.checkout(for: .server) else {
            Issue.record("an unbounded queue")
            return
        }
        #expect(described(machine.enqueue("b", for: .server, number: 2, now: start)) == ["fail b: tooManyWaiters"])
    }

    @Test func `a caller who waited too long fails, later ones go on waiting`() {
        var machine = running(1)
        _ = lent(&machine)
        _ = machine.enqueue("a", for: .server, number: 1, now: start)
        _ = machine.enqueue("b", for: .server, number: 2, now: start + .milliseconds(100))
        #expect(
            described(machine.timePassed(now: start + .milliseconds(250)))
                == ["fail a: poolExhausted", "wake in 0.35 seconds"])
        #expect(machine.waiting == 1)
    }

    @Test func `a caller who gave up is skipped`() {
        var machine = running(1)
        let connection = lent(&machine)
        _ = machine.enqueue("a", for: .server, number: 1, now: start)
        _ = machine.enqueue("b", for: .server, number: 2, now: start)
        #expect(machine.cancel(number: 1) == "a")
        #expect(machine.cancel(number: 1) == nil)
        #expect(
            described(machine.checkin(connection ?? 0, of: .server, isReusable: true, now: start)) == [
                "resume b with 1"
            ])
    }

    @Test func `a broken connection is closed and replaced`() {
        var machine = running(2)
        let connection = lent(&machine)
        #expect(
            described(machine.checkin(connection ?? 0, of: .server, isReusable: false, now: start)) == [
                "close 2", "connect 1",
            ])
    }

    @Test
    func `while the server is away one attempt at a time is made, at most 200 ms apart as long as somebody waits`() {
        var machine = Machine(.init(capacity: 8, maximumWaiters: 100, checkoutTimeout: .seconds(10)))
        var now = start
        var attempts: [ContinuousClock.Instant] = []
        var alarm: ContinuousClock.Instant?
        func perform(_ actions: [Machine.Action]) {
            for action in actions {
                switch action {
                case .connect(let count):
                    #expect(count == 1)
                    attempts.append(now)
                case .wake(let instant): alarm = instant
                default: Issue.record("\(action)")
                }
            }
        }
        perform(machine.start(now: now))
        perform(machine.enqueue("a", for: .server, number: 1, now: now))
        for _ in 0..<30 {
            if machine.connecting > 0 { perform(machine.connectFailed(.connectFailed, now: now)) }
            guard let next = alarm else { break }
            now = max(now, next)
            perform(machine.timePassed(now: now))
        }
        #expect(attempts.count > 20)
        for (earlier, later) in zip(attempts, attempts.dropFirst()) { #expect(later - earlier <= .milliseconds(200)) }
        #expect(machine.connecting <= 1)
    }

    @Test func `an attempt that hangs does not keep the next one from being made`() {
        var machine = Machine(.init(capacity: 2, maximumWaiters: 9, checkoutTimeout: .seconds(1)))
        _ = machine.start(now: start)
        #expect(described(machine.enqueue("a", for: .server, number: 1, now: start)) == ["wake in 0.2 seconds"])
        #expect(described(machine.timePassed(now: start + .milliseconds(200))).first == "connect 1")
        #expect(machine.connecting == 2)
    }

    @Test func `without demand the pause between attempts grows to two seconds`() {
        var machine = Machine(.init(capacity: 2, maximumWaiters: 9, checkoutTimeout: .seconds(1)))
        _ = machine.start(now: start)
        var now = start
        for _ in 0..<12 {
            let actions = machine.connectFailed(.connectFailed, now: now)
            guard case .wake(let due)? = actions.last else {
                Issue.record("no alarm: \(actions)")
                return
            }
            #expect(due - now <= .seconds(2))
            now = due
            _ = machine.timePassed(now: now)
        }
        #expect(now - start > .seconds(5))
    }

    @Test func `draining fails those who wait, lets loans end, and is finished with the last of them`() {
        var machine = running(2)
        let first = lent(&machine)
        let second = lent(&machine)
        _ = machine.enqueue("a", for: .server, number: 1, now: start)
        #expect(described(machine.drain()) == ["fail a: notRunning"])
        guard case .refuse(.notRunning) = machine.checkout(for: .server) else {
            Issue.record("lent while draining")
            return
        }
        #expect(described(machine.checkin(first ?? 0, of: .server, isReusable: true, now: start)) == ["close 2"])
        #expect(
            described(machine.checkin(second ?? 0, of: .server, isReusable: false, now: start)) == [
                "close 1", "finished",
            ])
        #expect(machine.phase == .closed)
    }

    @Test func `a connection that comes after the end is closed`() {
        var machine = Machine(.init(capacity: 1, maximumWaiters: 1, checkoutTimeout: .seconds(1)))
        _ = machine.start(now: start)
        #expect(described(machine.drain()) == ["finished"])
        #expect(described(machine.connected(1, now: start)) == ["close 1"])
    }

    @Test func `random histories never lend a connection twice, exceed the capacity or forget a caller`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let capacity = Int.random(in: 1...4, using: &generator)
            var machine = Machine(.init(capacity: capacity, maximumWaiters: 3, checkoutTimeout: .milliseconds(250)))
            var now = start
            var number: UInt64 = 0
            var nextConnection = 0
            var held: Set<Int> = []
            var queued: Set<String> = []
            var connecting = 0
            func perform(_ actions: [Machine.Action]) {
                for action in actions {
                    switch action {
                    case .resume(let waiter, let connection):
                        #expect(queued.remove(waiter) != nil)
                        #expect(held.insert(connection).inserted)
                    case .fail(let waiter, _): #expect(queued.remove(waiter) != nil)
                    case .connect(let count): connecting += count
                    case .close, .wake, .finished: break
                    }
                }
            }
            perform(machine.start(now: now))
            for _ in 0..<200 {
                now += .milliseconds(Int.random(in: 0...60, using: &generator))
                switch Int.random(in: 0..<7, using: &generator) {
                case 0, 1:
                    number += 1
                    switch machine.checkout(for: .server) {
                    case .lend(let connection): #expect(held.insert(connection).inserted)
                    case .refuse: break
                    case .wait:
                        queued.insert("\(number)")
                        perform(machine.enqueue("\(number)", for: .server, number: number, now: now))
                    }
                case 2, 3:
                    guard let connection = held.randomElement(using: &generator) else { continue }
                    held.remove(connection)
                    perform(
                        machine.checkin(connection, of: .server, isReusable: Bool.random(using: &generator), now: now))
                case 4 where connecting > 0:
                    connecting -= 1
                    nextConnection += 1
                    perform(machine.connected(nextConnection, now: now))
                case 5 where connecting > 0:
                    connecting -= 1
                    perform(machine.connectFailed(.connectFailed, now: now))
                default: perform(machine.timePassed(now: now))
                }
                #expect(machine.lent == held.count)
                #expect(machine.connecting == connecting)
                #expect(machine.waiting == queued.count)
                #expect(machine.lent + machine.available.count + machine.connecting <= capacity)
                #expect(machine.available.isEmpty || queued.isEmpty)
            }
        }
    }
}
