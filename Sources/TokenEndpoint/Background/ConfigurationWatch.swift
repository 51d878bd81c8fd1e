import Grants
import Logging
import Persistence

/// Keeps realm snapshots current: receives changes, and confirms several times a second that there were none.
/// Compares the clocks. Wakes the requests that are held. One for each cluster.
struct ConfigurationWatch: Sendable {
    let database: Database
    let part: Database.Part
    let realms: ClusterRealms
    let waiting: LongPolls
    let databaseClock: DatabaseClock
    let logger: Logger

    /// The connection that reports to this.
    /// - Parameter clock: this machine's clock, seconds since the epoch.
    func listener(clock: @escaping @Sendable () -> Double) -> ListenConnection {
        ListenConnection(
            configuration: part.configuration, channels: ["postern_config", WaitTopic.channel], clock: clock,
            logger: logger, onEvent: note)
    }

    private func note(_ event: ListenConnection.Event) {
        // Before the realms, so that no request reads a changed realm in the cluster that it has left.
        database.heard(event, from: part)
        switch event {
        case .clocks(let reading): note(reading)
        case .heartbeat(let stamp): realms.confirm(stamp: stamp)
        case .notification(WaitTopic.channel, let payload): WaitTopic(payload: payload).map(waiting.wake)
        case .notification(_, let realm): realms.changed(realm)
        case .connected:
            realms.invalidate()
            waiting.wakeAll()
        case .lost: realms.invalidate()
        }
    }

    /// Publishes what the clocks showed; writes one line when the difference becomes too large, and one when it ends.
    private func note(_ reading: DatabaseClock.Reading) {
        let wasWrong = databaseClock.wasSeenWrong
        databaseClock.saw(reading, of: part.index)
        guard databaseClock.wasSeenWrong != wasWrong else { return }
        if wasWrong {
            logger.notice("the clocks of this machine and the database agree again")
        } else {
            logger.error(
                "the clocks of this machine and the database differ by more than 60 s: no tokens are issued",
                metadata: ["seconds": "\(Int(reading.difference))"])
        }
    }
}
