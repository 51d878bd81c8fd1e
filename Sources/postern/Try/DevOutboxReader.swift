import Foundation
import FoundationNetworking
import PosternClient

/// Reads codes and links where `postern dev` keeps them. It prints none of its requests: a person would look into
/// a mail.
struct DevOutboxReader {
    enum Kind { case code, link }

    /// A message, as the dev outbox lists it.
    struct Message: Decodable, Equatable {
        let to: String
        let code: String?
        let link: String?
        let at: String

        func value(_ kind: Kind) -> String? { kind == .code ? code : link }
    }

    /// What `postern dev` says at a host that no realm has.
    private struct UnknownHost: Decodable {
        let error: String
        let hosts: [String]
    }

    /// What there is for somebody.
    enum Newest: Equatable {
        /// The server has no dev outbox.
        case noOutbox
        case message(Message?)
    }

    private let url: URL
    private let transport = URLSessionTransport()

    init(_ origin: URL) { url = origin.appending(path: "dev/outbox.json") }

    /// The newest message of this kind to an address or number.
    func newest(_ kind: Kind, to address: String) async throws -> Newest {
        let body: Data
        let response: HTTPURLResponse
        do {
            (body, response) = try await transport.send(URLRequest(url: url))
        } catch {
            throw CommandFailure("\(url.host ?? "the server") does not answer: \(error.localizedDescription)")
        }
        if response.statusCode == 404, let refusal = try? JSONDecoder().decode(UnknownHost.self, from: body),
            refusal.error == "unknown_host"
        {
            throw CommandFailure(
                "no realm has the host \(url.host ?? ""): --url takes one of \(refusal.hosts.joined(separator: ", "))")
        }
        guard response.statusCode == 200, let messages = try? JSONDecoder().decode([Message].self, from: body) else {
            return .noOutbox
        }
        return .message(messages.first { $0.value(kind) != nil && Self.went(to: address, $0) })
    }

    /// The code given, or the one that came since, or what the user types.
    func code(given: String?, sentTo address: String, since before: Newest) async throws -> String {
        if let given { return given }
        if let code = try await arrived(.code, to: address, since: before) {
            say("  the dev outbox has the code \(code)\n")
            return code
        }
        say("The code that was sent to \(address): ", terminator: "")
        guard let typed = readLine(), !typed.isEmpty else { throw CommandFailure("no code was typed") }
        return typed
    }

    /// What came since; `nil` when nothing did in five seconds, or there is no dev outbox.
    func arrived(_ kind: Kind, to address: String, since before: Newest) async throws -> String? {
        guard before != .noOutbox else { return nil }
        for _ in 0..<50 {
            let now = try await newest(kind, to: address)
            if now != before, case .message(let message?) = now { return message.value(kind) }
            try await Task.sleep(for: .milliseconds(100))
        }
        return nil
    }

    /// Whether a message went to an address. A number may be typed in any way, also without the code of its country.
    private static func went(to address: String, _ message: Message) -> Bool {
        guard message.to.hasPrefix("+"), !message.to.contains("@") else {
            return message.to.lowercased() == address.lowercased()
        }
        let typed = address.filter { $0.isASCII && $0.isNumber }.drop { $0 == "0" }
        return !typed.isEmpty && message.to.hasSuffix(typed)
    }
}
