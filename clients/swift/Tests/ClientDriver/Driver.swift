import Foundation
import PosternClient

/// A command of the driver: its result is printed.
typealias Command = @Sendable (_ client: PosternClient, _ arguments: JSONValue) async throws -> JSONValue

/// Reads commands from standard input, one JSON object a line, runs them side by side, and prints their outcomes:
///
///     {"id": 1, "method": "open", "arguments": {"origin": "https://…", "client": "…", "base": "http://127.0.0.1:…"}}
///     {"id": 1, "result": null}
///     {"id": 2, "error": {"case": "unavailable", "retryAfter": 3}}
///     {"event": "log", "kind": "refresh", "detail": {…}}
@main
struct Driver {
    static func main() async {
        let output = Output()
        let session = Session(output)
        await withTaskGroup(of: Void.self) { group in
            for await line in Input.lines() {
                guard let command = JSONValue(Data(line.utf8)), let id = command["id"]?.number,
                    let method = command["method"]?.string
                else { continue }
                group.addTask {
                    var outcome: [String: JSONValue] = ["id": .number(id)]
                    do {
                        outcome["result"] = try await session.run(method, command["arguments"] ?? .object([:]))
                    } catch {
                        outcome["error"] = describe(error)
                    }
                    output.print(.object(outcome))
                }
            }
        }
    }
}

/// The client that `open` made, and what it is asked to do.
actor Session {
    private static let commands = [tokenCommands, signInCommands, accountCommands, deviceCommands].reduce(into: [:]) {
        $0.merge($1) { $1 }
    }
    private let output: Output
    private var client: PosternClient?

    init(_ output: Output) { self.output = output }

    func run(_ method: String, _ arguments: JSONValue) async throws -> JSONValue {
        if method == "open" {
            client = try open(arguments, output)
            return .null
        }
        guard let client, let command = Self.commands[method] else { throw PosternError.misuse("no \(method)") }
        return try await command(client, arguments)
    }
}

/// Prints whole lines, from any thread.
struct Output: Sendable {
    private static let queue = DispatchQueue(label: "output")

    func print(_ value: JSONValue) {
        let line = value.data + Data("\n".utf8)
        Self.queue.sync { FileHandle.standardOutput.write(line) }
    }
}

/// Lines of standard input, read by a thread of their own.
enum Input {
    static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
