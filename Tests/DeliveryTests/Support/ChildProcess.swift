import Foundation
import Glibc
import Synchronization

/// A child process whose standard output is read line by line on a thread of its own. It sees the end of its standard
/// input when the test process ends, however that happens.
final class ChildProcess: Sendable {
    private let pid: pid_t
    private let input: Int32
    private let hasEnded = Mutex(false)
    /// One at a time, so that no child inherits the pipes of another before they are marked.
    private static let spawning = Mutex(())

    /// - Parameters:
    ///   - onLine: Called with each line, and with `nil` at the end of the output.
    init(_ arguments: [String], onLine: @escaping @Sendable (Data?) -> Void) throws {
        let (pid, input, output) = try Self.spawning.withLock { _ in
            let stdin = try Self.pipe()
            let stdout = try Self.pipe()
            let pid = try Self.spawn(arguments, stdin: stdin.read, stdout: stdout.write)
            close(stdin.read)
            close(stdout.write)
            return (pid, stdin.write, stdout.read)
        }
        self.pid = pid
        self.input = input
        Thread.detachNewThread {
            var partial = Data()
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while case let count = read(output, &buffer, buffer.count), count > 0 {
                partial += buffer[..<count]
                while let end = partial.firstIndex(of: 0x0A) {
                    onLine(partial[..<end])
                    partial = Data(partial[(end + 1)...])
                }
            }
            close(output)
            onLine(nil)
        }
    }

    /// Kills the process and waits until it is gone.
    func stop() {
        hasEnded.withLock { ended in
            guard !ended else { return }
            ended = true
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            close(input)
        }
    }

    /// Runs a command to its end; its output is dropped.
    static func run(_ arguments: [String]) throws {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        let pid = try spawning.withLock { _ in try spawn(arguments, stdin: null, stdout: null, stderr: null) }
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        guard status == 0 else { throw CocoaError(.executableLoad) }
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func spawn(
        _ arguments: [String], stdin: Int32, stdout: Int32, stderr: Int32? = nil
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, stdin, 0)
        posix_spawn_file_actions_adddup2(&actions, stdout, 1)
        if let stderr { posix_spawn_file_actions_adddup2(&actions, stderr, 2) }
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { words.forEach { free($0) } }
        words.append(nil)
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, arguments[0], &actions, nil, words, environ)
        guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .ENOENT) }
        return pid
    }
}
