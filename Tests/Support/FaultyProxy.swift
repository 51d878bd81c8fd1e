import Foundation
import Glibc
import Synchronization

/// Stands between client and server, on a unix socket of its own, and misbehaves on demand.
public final class FaultyProxy: Sendable {
    /// What to do once the client sends bytes that contain ``trigger``.
    public enum Fault: Sendable {
        /// Forward them, swallow whatever the server answers, then cut: done, but nobody knows.
        case swallowAnswer
        /// Cut before forwarding them: not done.
        case cutBefore
        /// Forward nothing more in either direction, and keep the connections open: a silent network.
        case goSilent
        /// Forward them, but only the first bytes of the answer, then cut.
        case cutAnswerAfter(Int)
    }

    private struct State {
        var fault: Fault?
        var trigger: [UInt8] = []
        var connections: [Int32] = []
        var isClosed = false
    }

    /// Host for a connection string.
    public let directory: String
    private let upstream: String
    private let listener: Int32
    private let state = Mutex(State())

    /// Forwards to the server of `postgres`.
    public init(to postgres: ThrowawayPostgres) throws {
        upstream = postgres.directory + "/.s.PGSQL.5432"
        directory = postgres.directory + "/proxy-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let isListening = Self.withAddress(directory + "/.s.PGSQL.5432") {
            bind(listener, $0, $1) == 0 && listen(listener, 64) == 0
        }
        guard isListening else { throw ThrowawayPostgres.Failure(description: "the proxy cannot listen") }
        Thread.detachNewThread { self.accept() }
    }

    /// Arms a fault; it strikes once.
    public func arm(_ fault: Fault, on trigger: String) {
        state.withLock { state in
            state.fault = fault
            state.trigger = Array(trigger.utf8)
        }
    }

    /// Whether an armed fault has struck.
    public var hasStruck: Bool { state.withLock { $0.fault == nil } }

    /// Cuts every connection and stops.
    public func close() {
        let connections = state.withLock { state in
            state.isClosed = true
            return state.connections
        }
        for connection in connections { shutdown(connection, Int32(SHUT_RDWR)) }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0, !state.withLock({ $0.isClosed }) else { break }
            let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            guard Self.withAddress(upstream, { connect(server, $0, $1) == 0 }) else {
                Glibc.close(client)
                Glibc.close(server)
                continue
            }
            state.withLock { $0.connections += [client, server] }
            let link = Link(client: client, server: server)
            Thread.detachNewThread { self.pumpRequests(link) }
            Thread.detachNewThread { self.pumpAnswers(link) }
        }
        Glibc.close(listener)
    }

    private final class Link: Sendable {
        let client: Int32
        let server: Int32
        let fault = Mutex<Fault?>(nil)

        init(client: Int32, server: Int32) {
            self.client = client
            self.server = server
        }

        func cut() {
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
        }
    }

    private func pumpRequests(_ link: Link) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(link.client, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            let fault = state.withLock { state -> Fault? in
                guard let fault = state.fault, contains(buffer[..<count], state.trigger) else { return nil }
                state.fault = nil
                return fault
            }
            if let fault { link.fault.withLock { $0 = fault } }
            switch fault {
            case .cutBefore: return link.cut()
            case .goSilent: return
            default: send(link.server, buffer, count, Int32(MSG_NOSIGNAL))
            }
        }
        shutdown(link.server, Int32(SHUT_WR))
    }

    private func pumpAnswers(_ link: Link) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(link.server, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            switch link.fault.withLock({ $0 }) {
            case .swallowAnswer: return link.cut()
            case .goSilent: continue
            case .cutAnswerAfter(let limit):
                send(link.client, buffer, min(limit, count), Int32(MSG_NOSIGNAL))
                return link.cut()
            default: send(link.client, buffer, count, Int32(MSG_NOSIGNAL))
            }
        }
        shutdown(link.client, Int32(SHUT_WR))
    }

    private func contains(_ bytes: ArraySlice<UInt8>, _ trigger: [UInt8]) -> Bool {
        guard !trigger.isEmpty, bytes.count >= trigger.count else { return false }
        return bytes.indices.dropLast(trigger.count - 1).contains {
            bytes[$0..<($0 + trigger.count)].elementsEqual(trigger)
        }
    }

    private static func withAddress<R>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { memory in
            memory.copyBytes(from: Array(path.utf8.prefix(memory.count - 1)))
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
