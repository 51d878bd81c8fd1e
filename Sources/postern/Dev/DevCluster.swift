import Foundation
import Glibc

/// The private PostgreSQL cluster of `postern dev`: a data directory and a unix socket, without TCP.
///
/// PostgreSQL refuses to run as root, so a root caller's cluster runs as user `postgres`.
struct DevCluster {
    /// `.postern/postgres` or, when user `postgres` cannot reach that, a directory under `/var/tmp` named in
    /// `.postern/location`.
    let directory: URL
    private let binaries: URL
    private let asPostgres: Bool

    var socketDirectory: URL { directory.appending(path: "run") }
    private var data: URL { directory.appending(path: "data") }
    private var log: URL { directory.appending(path: "postgresql.log") }

    /// libpq parameters of the cluster's superuser.
    var conninfo: String { "host='\(socketDirectory.path)' dbname=postern user=postgres" }

    init(root: URL) throws {
        binaries = try Self.findBinaries()
        asPostgres = getuid() == 0
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        directory = try Self.place(root, asPostgres: asPostgres)
    }

    /// Creates the cluster when there is none, starts it when it does not run, and creates database `postern`.
    /// - Returns: the server process when this call started it.
    func start() throws -> Process? {
        if !FileManager.default.fileExists(atPath: data.appending(path: "PG_VERSION").path) {
            say("Creating a private PostgreSQL cluster in \(directory.path) …")
            try run(
                "initdb", "-D", data.path, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                "--no-instructions")
        }
        if (try? run("pg_isready", "-q", "-h", socketDirectory.path)) != nil { return nil }
        let server = Process()
        let command = [
            binaries.appending(path: "postgres").path, "-D", data.path, "-k", socketDirectory.path, "-c",
            "listen_addresses=",
        ]
        // A session of its own: Ctrl-C reaches postern alone, which drains before it stops the database.
        try configure(server, ["setsid"] + dropped(command))
        try Data().write(to: log)
        server.standardOutput = try FileHandle(forWritingTo: log)
        server.standardError = server.standardOutput
        try server.run()
        try waitUntilReady(server)
        let isThere = try run(
            "psql", "-X", "-h", socketDirectory.path, "-U", "postgres", "-d", "postgres", "-Atc",
            "SELECT 1 FROM pg_database WHERE datname = 'postern'")
        if isThere.isEmpty { try run("createdb", "-h", socketDirectory.path, "-U", "postgres", "postern") }
        return server
    }

    /// Stops a cluster that an earlier run left behind.
    func stopIfRunning() throws {
        if (try? run("pg_isready", "-q", "-h", socketDirectory.path)) != nil {
            try run("pg_ctl", "-D", data.path, "-m", "fast", "-w", "stop")
        }
    }

    /// Fast shutdown: open transactions are rolled back, nothing committed is lost.
    func stop(_ server: Process) {
        _ = try? run("pg_ctl", "-D", data.path, "-m", "fast", "-w", "stop")
        server.waitUntilExit()
    }

    private func waitUntilReady(_ server: Process) throws {
        for _ in 0..<150 {
            if (try? run("pg_isready", "-q", "-h", socketDirectory.path)) != nil { return }
            guard server.isRunning else { break }
            usleep(100_000)
        }
        throw CommandFailure("PostgreSQL did not start: see \(log.path)")
    }

    @discardableResult
    private func run(_ tool: String, _ arguments: String...) throws -> String {
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        try configure(process, dropped([binaries.appending(path: tool).path] + arguments))
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let complaint = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let complaint = String(decoding: complaint, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            throw CommandFailure("\(tool) failed: \(complaint)")
        }
        return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func dropped(_ command: [String]) -> [String] {
        asPostgres ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] + command : command
    }

    private func configure(_ process: Process, _ command: [String]) throws {
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.currentDirectoryURL = URL(filePath: "/")
        process.standardInput = FileHandle.nullDevice
    }

    private static func findBinaries() throws -> URL {
        let root = URL(filePath: "/usr/lib/postgresql")
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
        let newest = versions.compactMap(Int.init).filter { version in
            FileManager.default.isExecutableFile(atPath: root.appending(path: "\(version)/bin/postgres").path)
        }.max()
        guard let newest else {
            throw CommandFailure(
                "PostgreSQL is not installed: `apt-get install postgresql`, or run scripts/dev, which does")
        }
        return root.appending(path: "\(newest)/bin")
    }

    /// A socket's path may hold 107 bytes, and user `postgres` must be able to reach its directory.
    private static func place(_ root: URL, asPostgres: Bool) throws -> URL {
        let pointer = root.appending(path: "location")
        var directory = root.appending(path: "postgres")
        if let text = try? String(contentsOf: pointer, encoding: .utf8) {
            directory = URL(filePath: text.trimmingCharacters(in: .whitespacesAndNewlines))
        } else if root.path.utf8.count > 60 || (asPostgres && !postgresCanReach(root)) {
            directory = URL(filePath: "/var/tmp/postern-dev-\(UUID().uuidString.prefix(8).lowercased())")
            try Data((directory.path + "\n").utf8).write(to: pointer)
        }
        for part in [directory, directory.appending(path: "run")] {
            try FileManager.default.createDirectory(at: part, withIntermediateDirectories: true)
        }
        if asPostgres {
            guard let account = getpwnam("postgres") else {
                throw CommandFailure(
                    "there is no user postgres: install the Debian package postgresql, or run scripts/dev")
            }
            let (uid, gid) = unsafe (account.pointee.pw_uid, account.pointee.pw_gid)
            for part in [directory, directory.appending(path: "run")] where chown(part.path, uid, gid) != 0 {
                throw CommandFailure("\(part.path) cannot be given to user postgres")
            }
        }
        return directory
    }

    private static func postgresCanReach(_ directory: URL) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "test", "-x", directory.path,
        ]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
