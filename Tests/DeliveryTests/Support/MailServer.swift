import Foundation

@testable import Delivery

/// A Python SMTP server as a child process. It ends when its standard input does, thus with the test at the latest.
final class MailServer: Sendable {
    /// One JSON line of the server; absent members are `nil`.
    struct Event: Decodable, Sendable {
        let event: String
        let port: Int?
        let sender: String?
        let recipients: [String]?
        let content: String?
        let tls: Bool?
        let connection: Int?
        let text: String?
        let mechanism: String?
        let ok: Bool?
        let method: String?
        let path: String?
        let headers: [String: String]?
        let seconds: Double?

        /// The received message.
        var message: String {
            String(decoding: Data(base64Encoded: content ?? "") ?? Data(), as: UTF8.self)
        }
    }

    let port: Int
    private let events: EventBuffer
    private let process: ChildProcess

    private init(script: String, arguments: [String]) async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let path = folder.appending(path: "Servers/\(script)").path
        let events = EventBuffer()
        self.events = events
        process = try ChildProcess(["/usr/bin/python3", path] + arguments) { events.append($0) }
        guard let port = try await events.next("ready").port else { throw CocoaError(.fileReadUnknown) }
        self.port = port
    }

    /// Runs `body` with a server and ends the server afterwards.
    static func run<R>(
        _ script: String, _ arguments: [String] = [], _ body: (MailServer) async throws -> R
    ) async throws -> R {
        let server = try await MailServer(script: script, arguments: arguments)
        defer { server.process.stop() }
        return try await body(server)
    }

    /// Runs `body` with aiosmtpd.
    static func wellBehaved<R>(_ arguments: [String] = [], _ body: (MailServer) async throws -> R) async throws -> R {
        try await run("smtpd.py", arguments, body)
    }

    /// Runs `body` with the server of that kind of misbehaviour.
    static func misbehaving<R>(_ mode: String, _ body: (MailServer) async throws -> R) async throws -> R {
        try await run("rawsmtpd.py", [mode], body)
    }

    /// Runs `body` with an HTTP server whose answers the path chooses (`httpd.py`).
    static func http<R>(_ arguments: [String] = [], _ body: (MailServer) async throws -> R) async throws -> R {
        try await run("httpd.py", arguments, body)
    }

    /// The next event of that name; earlier others are skipped.
    func next(_ name: String) async throws -> Event {
        try await events.next(name)
    }

    /// Ends the server and returns all events it ever sent.
    func allEvents() async -> [Event] {
        process.stop()
        _ = try? await events.next("end of output")
        return events.all
    }
}
