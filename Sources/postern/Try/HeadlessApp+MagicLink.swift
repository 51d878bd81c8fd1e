import Encoding
import Foundation
import Grants

extension HeadlessApp {
    private struct LinkReceipt: Decodable {
        let AuthSession: String
        let ExpiresIn: Int
        let Interval: Int
        let MatchNumber: String
    }

    /// A mail with a link, as the dev outbox lists it.
    private struct LinkMail: Decodable, Equatable {
        let to: String
        let link: String?
        let at: String
    }

    /// Asks for a link and polls; confirms the link itself when there is a dev outbox to read it from, else waits for
    /// the user.
    func signInByLink() async throws -> Tokens {
        let before = try await newestLink()
        var request = JSONWriter()
        request.member("ClientId", options.client)
        request.member("Email", options.email)
        let receipt: LinkReceipt = try decode(
            try await post("/api/account/magic-link/request", json: String(decoding: request.finish(), as: UTF8.self)))
        say("The app shows the number \(receipt.MatchNumber) and polls every \(receipt.Interval) seconds.\n")
        if let tokens = try await poll(receipt) { return tokens }
        if let link = try await link(after: before) {
            try await confirm(link, number: receipt.MatchNumber)
        } else {
            say("Open the link from the mail to \(options.email) and type \(receipt.MatchNumber).\n")
        }
        var interval = receipt.Interval
        var waited = 0
        while waited < receipt.ExpiresIn {
            say("  \(interval) seconds later\n")
            try await Task.sleep(for: .seconds(interval))
            waited += interval
            if let tokens = try await poll(receipt, interval: &interval) { return tokens }
        }
        throw CommandFailure("the link was not confirmed in time")
    }

    private func poll(_ receipt: LinkReceipt) async throws -> Tokens? {
        var interval = receipt.Interval
        return try await poll(receipt, interval: &interval)
    }

    /// One poll; `nil` when the link was not answered yet.
    private func poll(_ receipt: LinkReceipt, interval: inout Int) async throws -> Tokens? {
        struct Failure: Decodable { let error: String }
        let (status, answer) = try await attempt(
            .post, "/connect/token", contentType: "application/x-www-form-urlencoded",
            body: Self.encode([
                ("grant_type", "urn:cocoar:magic"), ("client_id", options.client),
                ("auth_session", receipt.AuthSession), ("scope", options.scope),
            ]))
        if status == 200 { return try decodeTokens(answer) }
        let failure: Failure = try decode(answer)
        switch failure.error {
        case "authorization_pending": return nil
        case "slow_down":
            interval += 5
            return nil
        default: throw CommandFailure("the server answered \(failure.error)")
        }
    }

    /// What a browser does when the link is opened and the number typed. A GET alone changes nothing.
    private func confirm(_ link: String, number: String) async throws {
        guard let url = URLComponents(string: link), let query = url.percentEncodedQuery else {
            throw CommandFailure("the link has an unexpected form: \(link)")
        }
        let values = Dictionary(
            (url.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
        say("  the dev outbox has the link \(link)\n")
        let page = try await quietlyText(get: "\(url.path)?\(query)")
        say("> GET \(url.path)?\(query)\n< the page says: \(Self.facts(on: page).joined(separator: "; "))\n")
        let (status, answer) = try await attemptQuietly(
            url.path, form: [("userId", values["userId"] ?? ""), ("token", values["token"] ?? ""), ("number", number)])
        say("> POST \(url.path)\n> userId=…&token=…&number=\(number)\n< \(status) \(Self.heading(of: answer))\n")
        guard status == 200 else { throw CommandFailure("the link was not confirmed") }
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

    private func newestLink() async throws -> LinkMail? {
        let mails: [LinkMail]? = try await quietly(get: "/dev/outbox.json")
        return mails?.first { $0.link != nil && $0.to.lowercased() == options.email.lowercased() }
    }

    /// The link that arrived in the dev outbox since then; `nil` when there is no dev outbox.
    private func link(after before: LinkMail?) async throws -> String? {
        let mails: [LinkMail]? = try await quietly(get: "/dev/outbox.json")
        guard mails != nil else { return nil }
        for _ in 0..<50 {
            if let mail = try await newestLink(), mail != before { return mail.link }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw CommandFailure("no link came into the dev outbox")
    }
}
