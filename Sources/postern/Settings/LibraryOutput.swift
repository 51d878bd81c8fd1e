import CLibPQ
import Glibc
import Logging
import Synchronization

/// What C libraries write to standard error, as lines of the log: libpq prints warnings of the server that come while
/// it connects, before a caller can ask it not to.
enum LibraryOutput {
    private static let logger = Mutex<Logger?>(nil)
    /// The address of the stream that C had; 0: it has it.
    private static let former = Mutex<UInt>(0)

    /// The last words of the process are no log line.
    static func end() {
        former.withLock { former in
            if former != 0 { postern_give_back_standard_error(UnsafeMutablePointer<FILE>(bitPattern: former)) }
            former = 0
        }
    }

    /// From now on. Our own log is written to the descriptor and not to C's stream.
    static func log(to logger: Logger) {
        Self.logger.withLock { $0 = logger }
        let stream = postern_take_standard_error { bytes, count in
            guard let bytes else { return }
            let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
            let logger = LibraryOutput.logger.withLock { $0 }
            for line in text.split(whereSeparator: \.isNewline) {
                logger?.warning("a library has something to say", metadata: ["text": "\(line)"])
            }
        }
        former.withLock { $0 = UInt(bitPattern: stream) }
    }
}
