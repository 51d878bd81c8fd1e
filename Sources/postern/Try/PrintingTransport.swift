import Foundation
import FoundationNetworking
import PosternClient
import Synchronization

/// Sends the requests of a headless app, and prints each with its answer.
final class PrintingTransport: Transport {
    private let transport = URLSessionTransport()
    private let last = Mutex(ContinuousClock.now)

    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let pause = last.withLock { [now = ContinuousClock.now] last in
            defer { last = now }
            return now - last
        }
        // What an app waits for between two polls is worth knowing; what this machine takes for its work is not.
        if pause >= .seconds(1) { say("  \(Int((pause / .seconds(1)).rounded())) seconds later\n") }
        var lines = request.lines
        if let body = request.httpBody { lines.append("> \(String(decoding: body, as: UTF8.self))") }
        do {
            let (body, response) = try await transport.send(request)
            last.withLock { $0 = .now }
            lines.append("< \(response.statusCode)")
            if response.statusCode == 400 || response.statusCode == 401 {
                lines += ["WWW-Authenticate", "DPoP-Nonce"].compactMap { name in
                    response.value(forHTTPHeaderField: name).map { "< \(name): \($0)" }
                }
            }
            if !body.isEmpty { lines.append("< \(String(decoding: body, as: UTF8.self))") }
            // All at once, because the requests of two apps may be under way.
            say(lines.joined(separator: "\n") + "\n")
            return (body, response)
        } catch {
            say(lines.joined(separator: "\n") + "\n< no answer: \(error.localizedDescription)\n")
            throw error
        }
    }
}

extension URLRequest {
    /// Its first line, without the origin, and the fields that prove something.
    fileprivate var lines: [String] {
        let fields = ["Authorization", "DPoP"].compactMap { name in
            value(forHTTPHeaderField: name).map { "> \(name): \($0)" }
        }
        return ["> \(httpMethod ?? "GET") \(url?.target ?? "")"] + fields
    }

    /// A request that posts a form.
    init(posting form: [(String, String)], to url: URL) {
        self.init(url: url)
        httpMethod = "POST"
        setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        httpBody = Data(form.map { "\($0)=\(Self.escape($1))" }.joined(separator: "&").utf8)
    }

    private static func escape(_ text: String) -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
}
