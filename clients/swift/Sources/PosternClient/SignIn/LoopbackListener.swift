import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A socket on 127.0.0.1 that waits for one request: the browser coming back with the answer.
struct LoopbackListener: Sendable {
    let port: UInt16
    private let descriptor: Int32

    /// Takes a port that is free.
    init() throws {
        let descriptor = socket(AF_INET, Self.stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listens = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                descriptor >= 0 && bind(descriptor, pointer, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard listens else {
            if descriptor >= 0 { close(descriptor) }
            throw PosternError.misuse("the app may not listen on 127.0.0.1: \(String(cString: strerror(errno)))")
        }
        setAlone(descriptor)
        self.descriptor = descriptor
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Gives the port back. ``target(of:state:)`` does so by itself.
    func end() { close(descriptor) }

    /// The target (RFC 9112 §3.2) of the first `GET` of the redirect URI that has this `state`. Everything else is 404.
    /// - Throws: ``DialogCancelled`` after ten minutes, or when the task is cancelled.
    func target(of redirect: URL, state: String?) async throws -> String {
        defer { end() }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw DialogCancelled() }
        let (stop, stopper) = (ends[0], ends[1])
        // Neither end is closed before the handler is gone: it might write to the next file of that number.
        defer {
            close(stop)
            close(stopper)
        }
        setAlone(stop)
        setAlone(stopper)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let descriptor = descriptor
                // A thread of its own, because it waits.
                DispatchQueue(label: "postern.loopback").async {
                    var server = LoopbackServer(listener: descriptor, stop: stop, redirect: redirect, state: state)
                    let target = server.run(for: .seconds(600))
                    continuation.resume(with: target.map(Result.success) ?? .failure(DialogCancelled()))
                }
            }
        } onCancel: {
            var byte: UInt8 = 0
            _ = write(stopper, &byte, 1)
        }
    }

    #if canImport(Glibc)
        private static let stream = Int32(SOCK_STREAM.rawValue)
    #else
        private static let stream = SOCK_STREAM
    #endif
}

/// No call waits for it, no child inherits it, and no signal comes from it.
private func setAlone(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    #if canImport(Darwin)
        var on: Int32 = 1
        _ = setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
}

/// Answers what comes to the port, until it is the browser. At most 16 connections of 16 KiB, for ten seconds each.
private struct LoopbackServer {
    private struct Connection {
        let descriptor: Int32
        let since = ContinuousClock.now
        var head = Data()
    }

    private static let mostConnections = 16, mostBytes = 16_384, patience = Duration.seconds(10)

    let listener: Int32
    /// Can be read from once the caller gave up.
    let stop: Int32
    let redirect: URL
    let state: String?
    private var connections: [Connection] = []

    init(listener: Int32, stop: Int32, redirect: URL, state: String?) {
        (self.listener, self.stop, self.redirect, self.state) = (listener, stop, redirect, state)
    }

    /// The target of the browser's request; `nil` when it did not come.
    mutating func run(for time: Duration) -> String? {
        let end = ContinuousClock.now + time
        defer { for connection in connections { close(connection.descriptor) } }
        while ContinuousClock.now < end {
            let watched = [listener, stop] + connections.map(\.descriptor)
            var polled = watched.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&polled, nfds_t(polled.count), 1000)
            let ready = Set(polled.filter { $0.revents != 0 }.map(\.fd))
            if ready.contains(stop) { return nil }
            let known = connections
            connections = []
            var target: String?
            for connection in known {
                if target == nil, ready.contains(connection.descriptor) {
                    target = serve(connection)
                } else {
                    keep(connection)
                }
            }
            if let target { return target }
            if ready.contains(listener) { take() }
        }
        return nil
    }

    private mutating func take() {
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { return }
        setAlone(descriptor)
        if connections.count == Self.mostConnections { close(connections.removeFirst().descriptor) }
        connections.append(Connection(descriptor: descriptor))
    }

    private mutating func keep(_ connection: Connection) {
        if ContinuousClock.now - connection.since < Self.patience {
            connections.append(connection)
        } else {
            close(connection.descriptor)
        }
    }

    /// Reads on; answers and closes the connection when its head is whole.
    private mutating func serve(_ connection: Connection) -> String? {
        var connection = connection
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(connection.descriptor, &bytes, bytes.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR {
            keep(connection)
            return nil
        }
        let isNew = max(0, connection.head.count - 3)
        connection.head.append(contentsOf: bytes.prefix(max(0, count)))
        let isWhole = connection.head[isNew...].range(of: Data("\r\n\r\n".utf8)) != nil
        guard count <= 0 || isWhole || connection.head.count > Self.mostBytes else {
            keep(connection)
            return nil
        }
        let request = isWhole ? LoopbackRequest(connection.head) : nil
        let isBrowser = request?.answers(redirect, state) == true
        if count > 0 { reply(isBrowser ? LoopbackRequest.done : LoopbackRequest.notFound, on: connection.descriptor) }
        close(connection.descriptor)
        return isBrowser ? request?.target : nil
    }

    private func reply(_ answer: String, on descriptor: Int32) {
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        let bytes = Array(answer.utf8)
        _ = send(descriptor, bytes, bytes.count, flags)
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }
}
