public import Logging
public import ServiceLifecycle

/// A dedicated connection that receives `NOTIFY` and verifies, a few times a second, that it is alive.
///
/// A notification that is sent while no connection listens is lost for good. So a cache that depends on notifications
/// is not valid between ``Event/lost`` and ``Event/connected``. It can also compare the heartbeat's value, which is
/// read on the same connection.
public struct ListenConnection: Service {
    /// What the connection reports, in the order it happens.
    public enum Event: Sendable, Equatable {
        /// Listening. Notifications sent from now on are received; earlier ones may have been missed.
        case connected
        /// Not listening any more.
        case lost
        /// Someone sent `NOTIFY channel, payload`.
        case notification(channel: String, payload: String)
        /// The value of the heartbeat statement.
        case heartbeat(String)
        /// What both clocks showed at a heartbeat; comes right before it.
        case clocks(DatabaseClock.Reading)
    }

    /// Reads a text that differs after every change of any configuration, and the database's clock.
    public static let configurationStamp = Statement(
        name: "config_stamp", sql: "SELECT postern.config_stamp(), extract(epoch FROM clock_timestamp())::float8",
        effect: .readOnly)

    private let configuration: DatabaseConfiguration
    private let channels: [String]
    private let heartbeat: Statement
    private let interval: Duration
    private let clock: @Sendable () -> Double
    private let logger: Logger
    private let onEvent: @Sendable (Event) -> Void

    /// - Parameters:
    ///   - configuration: which database; pool settings do not matter.
    ///   - channels: what to listen to.
    ///   - heartbeat: a statement without parameters that returns one text, and the clock's seconds beside it if they
    ///     are wanted.
    ///   - interval: time between two heartbeats, and the longest wait for the answer to one.
    ///   - clock: this machine's clock, seconds since the epoch.
    ///   - onEvent: called on the task of ``run()``, one event at a time; must not block.
    public init(
        configuration: DatabaseConfiguration, channels: [String], heartbeat: Statement = configurationStamp,
        interval: Duration = .milliseconds(400), clock: @escaping @Sendable () -> Double = { 0 }, logger: Logger,
        onEvent: @escaping @Sendable (Event) -> Void
    ) {
        var configuration = configuration
        configuration.statementTimeout = max(interval, .milliseconds(250))
        configuration.applicationName += " listen"
        self.configuration = configuration
        self.channels = channels
        self.heartbeat = heartbeat
        self.interval = interval
        self.clock = clock
        self.logger = logger
        self.onEvent = onEvent
    }

    /// Listens, and connects again whenever that ends, until graceful shutdown or cancellation.
    public func run() async {
        await cancelWhenGracefulShutdown {
            var pause = Duration.milliseconds(25)
            while !Task.isCancelled {
                if await listen() { pause = .milliseconds(25) }
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(250))
            }
        }
    }

    /// One connection's life. - Returns: whether it ever listened.
    private func listen() async -> Bool {
        guard let connection = Connection(configuration) else { return false }
        do {
            try await connection.connect()
            try await connection.listen(to: channels)
        } catch {
            logger.debug("not listening for notifications", metadata: ["error": "\(error)"])
            return false
        }
        onEvent(.connected)
        await withTaskCancellationHandler {
            await hear(connection)
        } onCancel: {
            connection.cancellation.cancel(Self.operation)
        }
        onEvent(.lost)
        return true
    }

    /// The whole lifetime of a connection is one operation: cancelling it ends every wait.
    private static let operation: UInt64 = 1

    private func hear(_ connection: Connection) async {
        while !Task.isCancelled {
            let due = ContinuousClock.now + interval
            let asked = clock()
            let outcome = await connection.runBlocking(heartbeat, [], operation: Self.operation) {
                (row) throws(StoreError) in
                (text: try row.text(0), time: row.columnCount > 1 ? try row.doubleOrNil(1) : nil)
            }
            guard case .success(let values) = outcome.result, let value = values.first else { return }
            if let time = value.time {
                onEvent(.clocks(.init(database: time, asked: asked, answered: clock())))
            }
            onEvent(.heartbeat(value.text))
            repeat {
                guard let events = try? await connection.notifications(until: due) else { return }
                for event in events { onEvent(event) }
            } while ContinuousClock.now < due && !Task.isCancelled
        }
    }
}
