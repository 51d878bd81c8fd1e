import Foundation

/// What the library takes from the device, so that tests can stand in for it.
package struct Surroundings: Sendable {
    /// The clock of the device, which people set.
    package var now: @Sendable () -> Date
    /// Seconds of a clock that cannot be set, and that goes on while the device sleeps.
    package var uptime: @Sendable () -> TimeInterval
    /// Waits. - Throws: when the task is cancelled.
    package var sleep: @Sendable (TimeInterval) async throws -> Void
    var keys: any Keys

    package init() {
        let start = ContinuousClock.now
        now = { Date() }
        uptime = {
            let (seconds, attoseconds) = (ContinuousClock.now - start).components
            return TimeInterval(seconds) + TimeInterval(attoseconds) / 1e18
        }
        // A server may say anything; a clock cannot count to everything.
        sleep = { try await Task.sleep(for: .seconds(min($0, 86_400)), clock: .continuous) }
        keys = PlatformKeys()
    }
}
