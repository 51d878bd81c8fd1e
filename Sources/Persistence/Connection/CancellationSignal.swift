import Glibc
import Synchronization

/// Tells a connection's thread, which may be waiting for the server, that the caller was cancelled.
///
/// Writable from any thread without blocking; the thread polls ``fileDescriptor`` next to the socket. Operations are
/// numbered, so that a late signal cannot hit the next one on the same connection.
final class CancellationSignal: Sendable {
    /// Readable after ``cancel(_:)``, until ``drain()``. Negative when the process is out of descriptors: then nothing
    /// is cancelled.
    let fileDescriptor: Int32
    private let writeEnd: Int32
    private let cancelled = Atomic<UInt64>(0)

    init() {
        var ends: (Int32, Int32) = (-1, -1)
        let status = withUnsafeMutablePointer(to: &ends) { pointer in
            pointer.withMemoryRebound(to: Int32.self, capacity: 2) { pipe($0) }
        }
        (fileDescriptor, writeEnd) = status == 0 ? ends : (-1, -1)
        guard status == 0 else { return }
        for end in [fileDescriptor, writeEnd] {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        if fileDescriptor >= 0 { close(fileDescriptor) }
        if writeEnd >= 0 { close(writeEnd) }
    }

    /// Asks for the end of operation `number`. Never blocks: a full pipe is readable already.
    func cancel(_ number: UInt64) {
        cancelled.store(number, ordering: .releasing)
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    /// Whether operation `number` is the one to end.
    func isCancelled(_ number: UInt64) -> Bool {
        cancelled.load(ordering: .acquiring) == number
    }

    /// Makes the descriptor unreadable again.
    func drain() {
        var bytes: (UInt64, UInt64) = (0, 0)
        while read(fileDescriptor, &bytes, MemoryLayout.size(ofValue: bytes)) > 0 {}
    }
}
