import Synchronization

/// How far this machine's clock is from the database's, as the listening connection last saw it.
///
/// A reading has the database's clock between two times of this process, so the difference is known to within a round
/// trip. Only the part that the round trip cannot explain counts. The monotonic clock carries a reading forward, so a
/// step of this machine's clock is noticed at once, not at the next heartbeat.
public final class DatabaseClock: Sendable {
    /// A difference beyond this is a fault: such a node must not sign or consume anything. Seconds.
    public static let maximumDifference = 60.0

    /// One look at both clocks. Seconds since the epoch.
    public struct Reading: Sendable, Equatable {
        /// The database's clock.
        public let database: Double
        /// This machine's clock before the statement was sent.
        public let asked: Double
        /// This machine's clock when the answer was there.
        public let answered: Double

        /// Takes the values as they are.
        public init(database: Double, asked: Double, answered: Double) {
            self.database = database
            self.asked = asked
            self.answered = answered
        }

        /// This machine's clock minus the database's, less what the round trip explains; positive when this machine is
        /// ahead.
        public var difference: Double {
            if asked > database { return asked - database }
            if answered < database { return answered - database }
            return 0
        }
    }

    private struct Known {
        let reading: Reading
        let at: ContinuousClock.Instant
    }

    /// By cluster.
    private let known = Mutex<[Int: Known]>([:])
    /// The greatest value that ``now`` had when a new reading replaced the one it was computed from. Seconds since the
    /// epoch.
    private let ended = Mutex(-Double.infinity)
    /// This machine's clock, seconds since the epoch.
    public let machine: @Sendable () -> Double
    private let monotonic: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - clock: this machine's clock, seconds since the epoch.
    ///   - monotonic: a clock that never steps.
    public init(
        clock: @escaping @Sendable () -> Double,
        monotonic: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        machine = clock
        self.monotonic = monotonic
    }

    /// The listening connection of a cluster read both clocks just now.
    public func saw(_ reading: Reading, of cluster: Int = 0) {
        let at = monotonic()
        if difference != nil, !isWrong {
            let until = now
            ended.withLock { $0 = max($0, until) }
        }
        known.withLock { $0[cluster] = Known(reading: reading, at: at) }
    }

    /// Our clock less the database's, in seconds, of the cluster where it is farthest off; `nil` before the first
    /// reading.
    public var difference: Double? {
        let (now, monotonic) = (machine(), monotonic())
        return known.withLock { known in
            var farthest: Double?
            for known in known.values {
                // What our clock should show if it had only run on since.
                let expected = known.reading.answered + known.at.duration(to: monotonic) / .seconds(1)
                let difference = known.reading.difference + (now - expected)
                if abs(difference) >= abs(farthest ?? 0) { farthest = difference }
            }
            return farthest
        }
    }

    /// The database's time as far as it is known: what is handed out ends, and what is presented is judged, by one
    /// clock on every node. Seconds since the epoch.
    public var now: Double { machine() - (difference ?? 0) }

    /// No node has dated anything later than this. It is later than ``now`` after a failover to a standby whose clock
    /// is behind. This machine's clock counts only while it is right. Seconds since the epoch.
    public var latest: Double { max(now, isWrong ? now : machine(), ended.withLock { $0 }) }

    /// Whether the last reading showed too large a difference.
    public var wasSeenWrong: Bool {
        known.withLock { $0.values.contains { abs($0.reading.difference) > Self.maximumDifference } }
    }

    /// Whether the difference is too large to issue tokens; `false` while it is not known.
    public var isWrong: Bool { abs(difference ?? 0) > Self.maximumDifference }
}
