import Foundation
import Synchronization

/// A private PostgreSQL 15 cluster in a temporary directory, listening on a unix socket only. It may be stopped,
/// killed, restarted and made to refuse connections without disturbing anybody. Its data is not worth an fsync.
///
/// Started as user `postgres` when the tests run as root, since PostgreSQL refuses to be root.
public final class ThrowawayPostgres: Sendable {
    /// How a server is told to stop.
    public enum StopMode: String, Sendable { case smart, fast, immediate }

    /// A program that failed, or a server that is not as expected.
    public struct Failure: Error, CustomStringConvertible {
        /// What the program said.
        public let description: String
    }

    /// The folder with the socket, the data and the log.
    public let directory: String
    private let binaries: String
    private let databaseCount = Mutex(0)

    /// Creates the cluster and starts it.
    /// - Parameter settings: lines for `postgresql.conf`.
    public init(settings: [String] = []) async throws {
        binaries = try Self.findBinaries()
        directory = "/tmp/postern-test-\(getpid())-\(String(UInt32.random(in: .min ... .max), radix: 36))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if geteuid() == 0 { try await Self.run("/bin/chown", ["postgres", directory]) }
        // All tests of a suite run at once with a pool or two each, and one that has half of its connections waits for
        // the others.
        let lines = [
            "listen_addresses = ''", "unix_socket_directories = '\(directory)'", "max_connections = 500",
            "fsync = off", "full_page_writes = off", "shared_buffers = 32MB", "autovacuum = off",
            "logging_collector = off", "log_min_messages = fatal",
        ]
        try await asServer(
            "initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"])
        try append((lines + settings).joined(separator: "\n") + "\n", to: "postgresql.conf")
        Self.killAtExit(directory)
        try await start()
    }

    private var data: String { directory + "/data" }

    /// A connection string; `extra` is appended.
    public func conninfo(database: String = "postgres", user: String = "postgres", extra: String = "") -> String {
        "host=\(directory) user=\(user) dbname=\(database) \(extra)"
    }

    /// Creates a database and returns its name.
    /// - Parameter template: the database to copy, to which nothing is connected; an empty one without it.
    public func createDatabase(from template: String = "template1") async throws -> String {
        let number = databaseCount.withLock { count in
            count += 1
            return count
        }
        let name = "test_\(number)"
        try await psql("CREATE DATABASE \(name) TEMPLATE \(template)")
        return name
    }

    /// Runs SQL as superuser over a connection of its own. - Returns: the rows, fields separated by `|`.
    @discardableResult
    public func psql(_ sql: String, database: String = "postgres") async throws -> [String] {
        let output = try await Self.run(
            binaries + "/psql",
            [
                "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", directory, "-U", "postgres", "-d", database,
                "-c", sql,
            ])
        return output.split(separator: "\n").map(String.init)
    }

    // MARK: Faults

    /// Starts the server and waits until it accepts connections.
    public func start() async throws {
        try await asServer("pg_ctl", ["-D", data, "-l", directory + "/log", "-w", "-t", "30", "-s", "start"])
    }

    /// Stops the server and waits until it is gone.
    public func stop(_ mode: StopMode = .fast) async throws {
        try await asServer("pg_ctl", ["-D", data, "-m", mode.rawValue, "-w", "-t", "30", "-s", "stop"])
    }

    /// Kills the postmaster and all of its children at once, as a power failure would.
    public func killEverything() async throws {
        guard let postmaster = postmasterID else { throw Failure(description: "not running") }
        let children = try await Self.run("/usr/bin/pgrep", ["-P", "\(postmaster)"]).split(separator: "\n").compactMap {
            Int32($0)
        }
        // Stopped first, so that no child can report the death of another.
        kill(postmaster, SIGSTOP)
        for child in children { kill(child, SIGKILL) }
        kill(postmaster, SIGKILL)
        for process in children + [postmaster] {
            while kill(process, 0) == 0, !Self.isZombie(process) { try await Task.sleep(for: .milliseconds(1)) }
        }
        // A zombie that nobody has reaped yet would look like a running server.
        unlink(data + "/postmaster.pid")
        unlink(directory + "/.s.PGSQL.5432.lock")
    }

    /// Makes the server refuse every new connection (`pg_hba.conf`: reject) to any database but `postgres`, or accept
    /// them again.
    public func refuseConnections(_ refuse: Bool) async throws {
        try "local postgres all trust\nlocal all all \(refuse ? "reject" : "trust")\n"
            .write(toFile: data + "/pg_hba.conf", atomically: false, encoding: .utf8)
        try await reload()
    }

    /// Appends lines to `postgresql.conf` and has the server read it again.
    public func configure(_ lines: String...) async throws {
        try append(lines.joined(separator: "\n") + "\n", to: "postgresql.conf")
        try await reload()
    }

    /// Ends every session of a database.
    public func terminateBackends(of database: String) async throws {
        try await psql(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = '\(database)'")
    }

    /// The processes that serve the sessions of a database.
    public func processes(of database: String) async throws -> [Int32] {
        try await psql("SELECT pid FROM pg_stat_activity WHERE datname = '\(database)'").compactMap { Int32($0) }
    }

    private func reload() async throws {
        guard let postmaster = postmasterID else { throw Failure(description: "not running") }
        kill(postmaster, SIGHUP)
        // The postmaster acts on the signal before it accepts the next connection it hears of after that; give it that
        // moment.
        try await Task.sleep(for: .milliseconds(100))
    }

    private var postmasterID: Int32? {
        (try? String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8))?
            .split(separator: "\n").first.flatMap { Int32($0) }
    }

    // MARK: Processes

    private func append(_ text: String, to file: String) throws {
        guard let handle = FileHandle(forWritingAtPath: data + "/" + file) else {
            throw Failure(description: "no \(file)")
        }
        defer { try? handle.close() }
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(text.utf8))
    }

    private func asServer(_ program: String, _ arguments: [String]) async throws {
        let command = [binaries + "/" + program] + arguments
        if geteuid() == 0 {
            try await Self.run(
                "/usr/bin/setpriv", ["--reuid=postgres", "--regid=postgres", "--init-groups", "--"] + command)
        } else {
            try await Self.run(command[0], arguments)
        }
    }

    private static func findBinaries() throws -> String {
        let candidates = ["/usr/lib/postgresql/15/bin", "/usr/pgsql-15/bin", "/usr/local/pgsql/bin"]
        guard let found = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") })
        else {
            throw Failure(description: "PostgreSQL 15 is not installed (Debian: postgresql-15)")
        }
        return found
    }

    @discardableResult
    private static func run(_ path: String, _ arguments: [String]) async throws -> String {
        let (status, output) = try await Command.run(path, arguments)
        guard status == 0 else {
            throw Failure(description: "\(path) \(arguments.joined(separator: " ")): \(output)")
        }
        return output
    }

    private static func isZombie(_ process: Int32) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return status.contains(") Z ")
    }

    // MARK: End

    private static let directories = Mutex<[String]>([])

    /// Shared clusters live in static variables, which are never freed: kill the servers when the process ends.
    private static func killAtExit(_ directory: String) {
        let isFirst = directories.withLock { directories in
            directories.append(directory)
            return directories.count == 1
        }
        guard isFirst else { return }
        atexit {
            let servers = ThrowawayPostgres.directories.withLock { $0 }.map { directory in
                let file = try? String(contentsOfFile: directory + "/data/postmaster.pid", encoding: .utf8)
                return (directory: directory, process: file?.split(separator: "\n").first.flatMap { Int32($0) })
            }
            for server in servers { if let process = server.process { kill(process, SIGQUIT) } }
            for server in servers {
                // Its files can only be removed for good when it writes no more.
                for _ in 0..<300 {
                    guard let process = server.process, kill(process, 0) == 0, !ThrowawayPostgres.isZombie(process)
                    else { break }
                    usleep(10_000)
                }
                try? FileManager.default.removeItem(atPath: server.directory)
            }
        }
    }
}
