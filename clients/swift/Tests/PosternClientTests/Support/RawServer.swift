import Foundation

/// A server on a port of this device that answers each connection as a test says, whatever was asked.
final class RawServer: Sendable {
    let port: Int
    private let descriptor: Int32

    /// - Parameter answer: runs for each connection, on a thread of its own.
    init(_ answer: @escaping @Sendable (RawConnection) -> Void) throws {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listens = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard listens else { throw POSIXError(.EADDRINUSE) }
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            while true {
                let peer = accept(descriptor, nil, nil)
                guard peer >= 0 else { return }
                Thread.detachNewThread {
                    let connection = RawConnection(descriptor: peer)
                    connection.readHead()
                    answer(connection)
                    close(peer)
                }
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }
}

struct RawConnection: Sendable {
    fileprivate let descriptor: Int32

    fileprivate func readHead() {
        var head = Data()
        var bytes = [UInt8](repeating: 0, count: 4096)
        while head.range(of: Data("\r\n\r\n".utf8)) == nil {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { return }
            head.append(contentsOf: bytes[..<count])
        }
    }

    /// Waits until the peer goes.
    func waitForEnd() {
        var byte: UInt8 = 0
        while recv(descriptor, &byte, 1, 0) > 0 {}
    }

    /// - Returns: whether the peer still takes it.
    func send(_ text: String) -> Bool {
        #if canImport(Glibc)
            let flags = Int32(MSG_NOSIGNAL)
        #else
            let flags: Int32 = 0
        #endif
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                #if canImport(Glibc)
                    Glibc.send(descriptor, $0.baseAddress, $0.count, flags)
                #else
                    Darwin.send(descriptor, $0.baseAddress, $0.count, flags)
                #endif
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}

/// A number that threads count.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var number = 0
    var value: Int { lock.withLock { number } }
    func add(_ more: Int) { lock.withLock { number += more } }
}
