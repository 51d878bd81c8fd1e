import Foundation
import PosternClient

/// What dialogs and browsers ask the person, told as events and answered by the command `answer`:
///
///     {"event": "ask", "number": 1, "what": "get", "value": {…}}
///     {"id": 7, "method": "answer", "arguments": {"number": 1, "value": {…}}}
actor Questions {
    static let shared = Questions()

    private var waiting: [Int: CheckedContinuation<JSONValue, any Error>] = [:]
    private var count = 0

    func ask(_ what: String, _ value: JSONValue) async throws -> JSONValue {
        count += 1
        let number = count
        Output().print(["event": "ask", "number": .number(Double(number)), "what": .string(what), "value": value])
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiting[number] = $0 }
        } onCancel: {
            Task { await self.answer(number, nil) }
        }
    }

    /// - Parameter value: `nil` when the person gave up.
    func answer(_ number: Int, _ value: JSONValue?) {
        let waiter = waiting.removeValue(forKey: number)
        if let value { waiter?.resume(returning: value) } else { waiter?.resume(throwing: DialogCancelled()) }
    }
}

/// Asks for credentials by the events `create` and `get`. What is answered in place of JSON as a string is passed on as it is.
struct AskingDialog: PasskeyDialog {
    func create(_ options: Data) async throws -> Data {
        try await data(Questions.shared.ask("create", JSONValue(options) ?? .null))
    }

    func get(_ options: Data, style: PasskeyStyle) async throws -> Data {
        try await data(Questions.shared.ask("get", JSONValue(options) ?? .null))
    }

    private func data(_ value: JSONValue) -> Data { value.string.map { Data($0.utf8) } ?? value.data }
}

/// Asks for the URL that comes back by the event `page`.
struct AskingBrowser: PageBrowser {
    func redirect(for registered: URL) async throws -> URL { registered }

    func open(_ page: URL, until redirect: URL) async throws -> URL {
        let answer = try await Questions.shared.ask("page", .string(page.absoluteString))
        guard let url = answer.string.flatMap(URL.init(string:)) else { throw DialogCancelled() }
        return url
    }
}

/// Tells the page by the event `show`; the answer comes to its port.
func loopbackBrowser() -> LoopbackBrowser {
    LoopbackBrowser { page in Output().print(["event": "show", "page": .string(page.absoluteString)]) }
}

/// Values of the library that no JSON can stand for, by names of the test.
actor Held {
    static let shared = Held()

    private var values: [String: any Sendable] = [:]

    func keep(_ value: some Sendable, as name: String) { values[name] = value }

    func take<Value: Sendable>(_ name: String, _ type: Value.Type) throws -> Value {
        guard let value = values[name] as? Value else { throw PosternError.misuse("nothing is held as \(name)") }
        return value
    }
}
