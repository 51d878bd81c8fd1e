import Synchronization
import Testing

@testable import Persistence

@Suite("The database's clock and ours")
struct DatabaseClockTests {
    /// Clocks that the test sets.
    private final class Clocks: Sendable {
        private let state = Mutex((wall: 1_000_000.0, monotonic: ContinuousClock.now))

        var wall: Double { state.withLock { $0.wall } }
        var monotonic: ContinuousClock.Instant { state.withLock { $0.monotonic } }

        func pass(_ seconds: Double) {
            state.withLock { state in
                state.wall += seconds
                state.monotonic += .seconds(seconds)
            }
        }

        func step(_ seconds: Double) { state.withLock { $0.wall += seconds } }
    }

    private let clocks = Clocks()
    private let clock: DatabaseClock

    init() {
        clock = DatabaseClock(clock: { [clocks] in clocks.wall }, monotonic: { [clocks] in clocks.monotonic })
    }

    private func see(difference: Double, roundTrip: Double = 0) {
        let asked = clocks.wall
        clocks.pass(roundTrip)
        clock.saw(.init(database: asked + roundTrip / 2 - difference, asked: asked, answered: clocks.wall))
    }

    @Test func `nothing is known before the first reading`() {
        #expect(clock.difference == nil)
        #expect(!clock.isWrong)
    }

    @Test(arguments: [0.0, 59, -59]) func `up to a minute is right`(difference: Double) {
        see(difference: difference)
        #expect(!clock.isWrong)
    }

    @Test(arguments: [61.0, -61, 86_400]) func `beyond a minute is wrong, either way`(difference: Double) {
        see(difference: difference)
        #expect(clock.isWrong)
        #expect(clock.wasSeenWrong)
        see(difference: 0)
        #expect(!clock.isWrong)
    }

    @Test func `what a slow answer can explain is no difference`() {
        see(difference: 100, roundTrip: 300)
        #expect(clock.difference == 0)
        see(difference: 200, roundTrip: 300)
        #expect(clock.difference == 50)
        see(difference: -220, roundTrip: 300)
        #expect(clock.difference == -70)
        #expect(clock.isWrong)
    }

    @Test func `a step of our clock is noticed before the next reading`() {
        see(difference: 0)
        clocks.pass(0.3)
        #expect(!clock.isWrong)
        clocks.step(3600)
        #expect(clock.isWrong)
        #expect(!clock.wasSeenWrong)
        clocks.step(-3600)
        #expect(!clock.isWrong)
    }

    @Test(arguments: [0.0, 40, -86_400]) func `the time is the database's, also right after a step of our clock`(
        step: Double
    ) {
        #expect(clock.now == clocks.wall, "the own clock before the first reading")
        see(difference: 20)
        clocks.pass(5)
        let time = clocks.wall - 20
        clocks.step(step)
        #expect(clock.now == time)
    }

    @Test func `when a database with a clock that is behind takes over, the latest time is that of the one before`() {
        see(difference: -10)
        clocks.pass(5)
        let ended = clock.now
        #expect(ended == clocks.wall + 10 && clock.latest == ended)
        see(difference: 50)
        #expect(clock.now == ended - 60 && clock.latest == ended)
        clocks.pass(100)
        see(difference: 50)
        #expect(clock.latest == clocks.wall, "our own clock, which is right, has passed it")
    }

    @Test func `a clock that is wrong dates nothing, ours or the database's`() {
        see(difference: 0)
        clocks.pass(5)
        clocks.step(3600)
        #expect(clock.latest == clocks.wall - 3600)
        see(difference: 3600)
        clocks.step(-3600)
        #expect(clock.latest == clocks.wall)
        see(difference: -86_400)
        see(difference: 0)
        #expect(clock.latest == clocks.wall, "a database that was a day ahead")
    }
}
