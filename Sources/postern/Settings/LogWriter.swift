import Dispatch
import Foundation
import Glibc
import Synchronization

/// Writes log lines to standard error from a thread of its own.
///
/// A request never waits for a log: lines queue up to a bound and are then dropped and counted. A full disk or a reader
/// that is gone loses lines, not the process.
final class LogWriter: Sendable {
    static let shared = LogWriter()

    private struct State {
        var lines: [String] = []
        var dropped = 0
        var isWriting = false
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private static let maximumLines = 4096

    private init() {
        signal(SIGPIPE, SIG_IGN)
        Thread.detachNewThread { self.run() }
    }

    /// Queues a line.
    func write(_ line: String) {
        state.withLock { state in
            if state.lines.count < Self.maximumLines { state.lines.append(line) } else { state.dropped += 1 }
        }
        wake.signal()
    }

    /// Waits until what is queued is written, for at most `milliseconds`; before the process ends.
    func flush(milliseconds: Int = 500) {
        for _ in 0..<milliseconds where state.withLock({ $0.isWriting || !$0.lines.isEmpty }) { usleep(1000) }
    }

    private func run() {
        while true {
            wake.wait()
            let (lines, dropped) = state.withLock { state in
                defer {
                    state.lines.removeAll(keepingCapacity: true)
                    state.dropped = 0
                    state.isWriting = true
                }
                return (state.lines, state.dropped)
            }
            var text = lines.isEmpty ? "" : lines.joined(separator: "\n") + "\n"
            if dropped > 0 { text += "\(dropped) log lines were dropped: standard output is read too slowly\n" }
            FileDescriptorOutput.write(text, to: STDERR_FILENO)
            state.withLock { $0.isWriting = false }
        }
    }
}

/// write(2) without traps: what cannot be written is lost.
enum FileDescriptorOutput {
    /// - Returns: whether all of it was written.
    @discardableResult
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if written == 0 || errno != EINTR {
                return false
            }
        }
        return true
    }
}
