import Testing

@testable import Persistence

@Suite("Shares of the pool")
struct PoolShareTests {
    typealias Machine = PoolStateMachine<Int, String>
    let start = ContinuousClock.now
    let hot = PoolShare.realm(.random())
    let quiet = PoolShare.realm(.random())

    func running(_ capacity: Int, maximumWaiters: Int = 1024) -> Machine {
        var machine = Machine(
            .init(capacity: capacity, maximumWaiters: maximumWaiters, checkoutTimeout: .milliseconds(250)))
        _ = machine.start(now: start)
        for connection in 1...capacity { _ = machine.connected(connection, now: start) }
        return machine
    }

    /// Takes connections until none is lent. - Returns: those taken.
    func exhaust(_ machine: inout Machine, for share: PoolShare) -> [Int] {
        var taken: [Int] = []
        while case .lend(let connection) = machine.checkout(for: share) { taken.append(connection) }
        return taken
    }

    func resumed(_ actions: [Machine.Action]) -> [String] {
        actions.compactMap { if case .resume(let waiter, _) = $0 { waiter } else { nil } }
    }

    @Test(arguments: [(1, 1), (2, 1), (3, 2), (4, 2), (8, 5), (16, 11), (64, 47)])
    func `a realm alone holds at most its share`(capacity: Int, share: Int) {
        var machine = running(capacity)
        #expect(exhaust(&machine, for: hot).count == share)
    }

    @Test func `however busy one realm is, another gets a connection at once`() {
        var machine = running(16)
        _ = exhaust(&machine, for: hot)
        for number in 1...700 { _ = machine.enqueue("hot \(number)", for: hot, number: UInt64(number), now: start) }
        #expect(exhaust(&machine, for: quiet).count == 3)
    }

    @Test func `busy realms end up with equal shares`() {
        var machine = running(16)
        let realms = (0..<3).map { _ in PoolShare.realm(.random()) }
        var held = [exhaust(&machine, for: realms[0]), [], []]
        var number: UInt64 = 0
        var waiting: [String: Int] = [:]
        func wait(_ realm: Int) {
            number += 1
            waiting["\(number)"] = realm
            take(machine.enqueue("\(number)", for: realms[realm], number: number, now: start))
        }
        func take(_ actions: [Machine.Action]) {
            for case .resume(let waiter, let connection) in actions {
                guard let realm = waiting.removeValue(forKey: waiter) else { continue }
                held[realm].append(connection)
            }
        }
        for _ in 0..<40 { (0..<3).forEach(wait) }
        for round in 0..<300 {
            let realm = round % 3
            guard !held[realm].isEmpty else { continue }
            let connection = held[realm].removeFirst()
            wait(realm)
            take(machine.checkin(connection, of: realms[realm], isReusable: true, now: start))
        }
        let counts = realms.map { machine.lent(to: $0) }
        #expect(counts.allSatisfy { (3...5).contains($0) }, "\(counts)")
        #expect(machine.lent < 15)
    }

    @Test func `realms that wait take turns, however many of one realm came first`() {
        var machine = running(2)
        let server = exhaust(&machine, for: .server)
        var number: UInt64 = 0
        func wait(_ name: String, _ share: PoolShare) {
            number += 1
            _ = machine.enqueue(name, for: share, number: number, now: start)
        }
        for index in 1...5 { wait("hot \(index)", hot) }
        wait("quiet 1", quiet)
        var order = resumed(machine.checkin(server[0], of: .server, isReusable: true, now: start))
        order += resumed(machine.checkin(server[1], of: .server, isReusable: true, now: start))
        #expect(order == ["hot 1", "quiet 1"])
        #expect(resumed(machine.checkin(server[1], of: quiet, isReusable: true, now: start)) == [])
        #expect(resumed(machine.checkin(server[0], of: hot, isReusable: true, now: start)) == ["hot 2"])
    }

    @Test func `realms together leave a connection to the server's own work`() {
        var machine = running(4)
        var taken = 0
        for _ in 0..<20 { taken += exhaust(&machine, for: .realm(.random())).count }
        #expect(taken == 3)
        #expect(exhaust(&machine, for: .server).count == 1)
    }

    @Test func `a realm fills its share of the waiting room and no more`() {
        var machine = running(4, maximumWaiters: 40)
        _ = exhaust(&machine, for: hot)
        var waiting = 0
        for number in 1...60 {
            let actions = machine.enqueue("\(number)", for: hot, number: UInt64(number), now: start)
            if actions.contains(where: { if case .fail = $0 { true } else { false } }) { break }
            waiting += 1
        }
        #expect(waiting == 30)
        guard case .lend = machine.checkout(for: quiet) else {
            Issue.record("another realm is refused")
            return
        }
    }

    @Test func `a share that lost its waiters is forgotten`() {
        var machine = running(1)
        _ = exhaust(&machine, for: .server)
        for number in 1...9 {
            _ = machine.enqueue("\(number)", for: .realm(.random()), number: UInt64(number), now: start)
        }
        for number in 1...4 { #expect(machine.cancel(number: UInt64(number)) == "\(number)") }
        #expect(machine.timePassed(now: start + .seconds(1)).count >= 5)
        #expect(machine.waiting == 0)
        #expect(resumed(machine.checkin(1, of: .server, isReusable: true, now: start)) == [])
        #expect(machine.available == [1])
    }

    @Test func `random histories of several realms never starve one, nor lend beyond a share`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<100 {
            let capacity = Int.random(in: 1...16, using: &generator)
            var machine = running(capacity, maximumWaiters: 30)
            let shares = [.server] + (0..<4).map { _ in PoolShare.realm(.random()) }
            var held: [(connection: Int, share: PoolShare)] = []
            var queued: [String: PoolShare] = [:]
            var number: UInt64 = 0
            func perform(_ actions: [Machine.Action]) {
                for action in actions {
                    switch action {
                    case .resume(let waiter, let connection):
                        if let share = queued.removeValue(forKey: waiter) { held.append((connection, share)) }
                    case .fail(let waiter, _): queued[waiter] = nil
                    case .connect, .close, .wake, .finished: break
                    }
                }
            }
            for _ in 0..<300 {
                let share = shares.randomElement(using: &generator) ?? .server
                if Bool.random(using: &generator) {
                    number += 1
                    switch machine.checkout(for: share) {
                    case .lend(let connection): held.append((connection, share))
                    case .refuse: break
                    case .wait:
                        queued["\(number)"] = share
                        perform(machine.enqueue("\(number)", for: share, number: number, now: start))
                    }
                } else if let index = held.indices.randomElement(using: &generator) {
                    let loan = held.remove(at: index)
                    perform(machine.checkin(loan.connection, of: loan.share, isReusable: true, now: start))
                }
                #expect(machine.lent == held.count)
                #expect(machine.waiting == queued.count)
                for share in shares {
                    #expect(machine.lent(to: share) == held.count { $0.share == share })
                    // Whoever holds nothing waits only when nothing, or only the server's connection, is free.
                    guard share != .server, queued.values.contains(share), machine.lent(to: share) == 0 else {
                        continue
                    }
                    #expect(machine.available.count <= 1)
                }
            }
            for loan in held { perform(machine.checkin(loan.connection, of: loan.share, isReusable: true, now: start)) }
        }
    }
}
