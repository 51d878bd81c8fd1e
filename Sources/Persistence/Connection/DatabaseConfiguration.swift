/// Where the database is and how patient to be with it.
public struct DatabaseConfiguration: Sendable {
    /// The libpq connection string (`host=… user=…` or `postgresql://…`, several hosts allowed), read afresh for every
    /// new connection: a source that reads a file makes a rotated password count without a restart.
    public var conninfoSource: @Sendable () -> String
    /// The number of connections to keep, each with its own thread.
    public var connections: Int
    /// How long a caller waits for a free connection.
    public var checkoutTimeout: Duration = .milliseconds(250)
    /// How many callers may wait at once.
    public var maximumWaiters: Int = 1024
    /// Time for connecting to one host; libpq counts in whole seconds, two at least.
    public var connectTimeout: Duration = .seconds(3)
    /// The longest wait for the answer to a statement. The server is told to give up slightly earlier.
    public var statementTimeout: Duration = .seconds(5)
    /// How long a statement waits for a lock. Short: a waiting statement keeps a connection from its realm.
    public var lockTimeout: Duration = .milliseconds(500)
    /// The role that statements run as; `nil`: the one that logs in.
    package var role: String?
    /// Shown in `pg_stat_activity`.
    public var applicationName: String = "postern/1"

    /// A database at a fixed connection string.
    public init(conninfo: String, connections: Int = 16) {
        self.init(conninfoSource: { conninfo }, connections: connections)
    }

    /// A database whose connection string is asked for whenever a connection is made.
    public init(conninfoSource: @escaping @Sendable () -> String, connections: Int = 16) {
        self.conninfoSource = conninfoSource
        self.connections = connections
    }

    /// The connection string as of now.
    public var conninfo: String { conninfoSource() }
}
