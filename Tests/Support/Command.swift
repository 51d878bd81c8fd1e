import Dispatch
import Foundation

/// Runs a program and waits for it. Not `Process`, whose `waitUntilExit` also waits for a daemon that the program
/// leaves behind.
public enum Command {
    /// There is no such program, or the system cannot start another.
    public struct CannotStart: Error { let path: String, code: Int32 }

    /// - Returns: the exit status, and what the program wrote to standard output and standard error.
    public static func run(_ path: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
        // Waiting for a program must not hold one of the few threads that all tests share.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try runBlocking(path, arguments) }) }
        }
    }

    private static func runBlocking(_ path: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let file = "/tmp/postern-output-\(getpid())-\(UInt32.random(in: .min ... .max))"
        defer { unlink(file) }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)

        let argv = cStrings([path] + arguments)
        let environment = cStrings(["PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"])
        defer { for text in argv + environment { free(text) } }

        var process = pid_t()
        let code = posix_spawn(&process, path, &actions, nil, argv, environment)
        guard code == 0 else { throw CannotStart(path: path, code: code) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let output = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        return (status & 0x7F == 0 ? (status >> 8) & 0xFF : -1, output)
    }

    /// Stops a process where it is; it stays alive but does nothing.
    public static func pause(_ process: Int32) { kill(process, SIGSTOP) }

    /// Ends a process, even one that is paused.
    public static func terminate(_ process: Int32) {
        kill(process, SIGTERM)
        kill(process, SIGCONT)
    }

    private static func cStrings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }
}
