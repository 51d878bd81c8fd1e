import Foundation
import FoundationNetworking

extension HeadlessBrowser {
    /// What a person does with a link: opens it and types the number. A GET alone changes nothing.
    func confirm(_ link: String, number: String) async throws {
        guard let url = URL(string: link), var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw CommandFailure("the link has an unexpected form: \(link)")
        }
        let items = Dictionary(
            (parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
        let (page, _) = try await load(URLRequest(url: url))
        let facts = Self.facts(on: String(decoding: page, as: UTF8.self))
        say("> GET \(url.target)\n< the page says: \(facts.joined(separator: "; "))\n")
        parts.query = nil
        let form = [("userId", items["userId"] ?? ""), ("token", items["token"] ?? ""), ("number", number)]
        let (answer, response) = try await load(URLRequest(posting: form, to: parts.url ?? url))
        let heading = Self.heading(of: String(decoding: answer, as: UTF8.self))
        say("> POST \(parts.path)\n> userId=…&token=…&number=\(number)\n< \(response.statusCode) \(heading)\n")
        guard response.statusCode == 200 else { throw CommandFailure("the link was not confirmed") }
    }

    /// The application, time and address that the page shows about the request.
    private static func facts(on page: String) -> [String] {
        page.components(separatedBy: "<dt>").dropFirst().map { part in
            let name = part.prefix { $0 != "<" }
            let value = part.components(separatedBy: "<dd").dropFirst().first?.components(separatedBy: "</dd>").first
            // The texts between the tags of the element.
            let texts = (value ?? "").components(separatedBy: ">").dropFirst().map { $0.prefix { $0 != "<" } }
            return "\(name) \(texts.joined().trimmingCharacters(in: .whitespacesAndNewlines))"
        }
    }

    private static func heading(of page: String) -> String {
        page.components(separatedBy: "<h1>").dropFirst().first.map { String($0.prefix { $0 != "<" }) } ?? ""
    }
}
