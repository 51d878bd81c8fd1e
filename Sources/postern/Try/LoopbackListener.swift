import Foundation
import Glibc

/// A listener on a free port of 127.0.0.1, as a native app has it for the end of a sign-in (RFC 8252 §7.3).
struct LoopbackListener {
    /// `http://127.0.0.1:PORT`.
    let origin: String
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port: UInt16? = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard bind(descriptor, pointer, length) == 0, listen(descriptor, 4) == 0,
                    getsockname(descriptor, pointer, &length) == 0
                else { return nil }
                return UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in.self).sin_port.bigEndian
            }
        }
        guard let port else {
            close(descriptor)
            throw CommandFailure("127.0.0.1 has no free port")
        }
        origin = "http://127.0.0.1:\(port)"
    }

    /// The target of the request with which the browser comes back. Waits on a thread of its own.
    func target() async throws -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [descriptor] in
                while true {
                    let connection = accept(descriptor, nil, nil)
                    guard connection >= 0 else { continue }
                    let target = Self.answer(connection)
                    close(connection)
                    // A browser also asks for an icon.
                    guard let target, target.contains("?") else { continue }
                    close(descriptor)
                    continuation.resume(returning: target)
                    return
                }
            }
        }
    }

    private static func answer(_ connection: Int32) -> String? {
        var timeout = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var head = [UInt8](repeating: 0, count: 16 * 1024)
        let count = read(connection, &head, head.count)
        guard count > 0 else { return nil }
        let text = "<!doctype html><title>Postern</title><p>You can close this page."
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(text.utf8.count)\r\n"
            + "Connection: close\r\n\r\n" + text
        _ = write(connection, answer, answer.utf8.count)
        let line = String(decoding: head[..<count], as: UTF8.self).prefix { $0 != "\r\n" }
        let parts = line.split(separator: " ")
        return parts.count == 3 && parts[0] == "GET" ? String(parts[1]) : nil
    }
}
