import Encoding
import Foundation
import Grants

extension HeadlessApp {
    /// Asks for a code and redeems it.
    /// - Parameter totp: what the user's authenticator app shows.
    func signInByCode(totp: String? = nil) async throws -> Tokens {
        struct Receipt: Decodable { let AuthSession: String }
        let before = try await newestCodeMail()
        var request = JSONWriter()
        request.member("ClientId", options.client)
        request.member("Email", options.email)
        let receipt: Receipt = try decode(
            try await post("/api/account/native/otp/request", json: String(decoding: request.finish(), as: UTF8.self)))
        let code = try await code(after: before)
        return try await token(
            [
                ("grant_type", "urn:cocoar:otp"), ("client_id", options.client), ("auth_session", receipt.AuthSession),
                ("otp_code", code), ("scope", options.scope),
            ] + (totp.map { [("totp_code", $0)] } ?? []))
    }

    /// Uses a refresh token.
    func refresh(_ tokens: Tokens) async throws -> Tokens {
        guard let refreshToken = tokens.refreshToken else {
            throw CommandFailure("no refresh_token: ask for scope offline_access with --scope")
        }
        return try await token([
            ("grant_type", "refresh_token"), ("client_id", options.client), ("refresh_token", refreshToken),
        ])
    }

    /// Reads userinfo.
    func userInfo(_ tokens: Tokens) async throws {
        _ = try await exchange(.get, "/connect/userinfo", tokens: tokens)
    }

    /// A mail with a code, as the dev outbox lists it.
    struct CodeMail: Decodable, Equatable {
        let to: String
        let code: String?
        let at: String
    }

    /// What the dev outbox knows of this user's codes.
    enum Outbox: Equatable {
        /// The server has no dev outbox.
        case none
        case newest(CodeMail?)
    }

    func newestCodeMail() async throws -> Outbox {
        guard let mails: [CodeMail] = try await quietly(get: "/dev/outbox.json") else { return .none }
        return .newest(mails.first { $0.code != nil && isAddressed($0.to) })
    }

    /// Whether a message went to the address of the options. A number may be typed in any way, also without the code of
    /// its country.
    private func isAddressed(_ recipient: String) -> Bool {
        guard recipient.hasPrefix("+"), !recipient.contains("@") else {
            return recipient.lowercased() == options.email.lowercased()
        }
        let typed = options.email.filter { $0.isASCII && $0.isNumber }.drop { $0 == "0" }
        return !typed.isEmpty && recipient.hasSuffix(typed)
    }

    /// The code given, or the one that came into the dev outbox since, or what the user types.
    func code(after before: Outbox) async throws -> String {
        if let code = options.code { return code }
        for _ in 0..<(before == .none ? 0 : 50) {
            if case .newest(let mail?) = try await newestCodeMail(), .newest(mail) != before, let code = mail.code {
                say("  the dev outbox has the code \(code)\n")
                return code
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        say("The code that was sent to \(options.email): ", terminator: "")
        guard let typed = readLine(), !typed.isEmpty else { throw CommandFailure("no code: give it with --code") }
        return typed
    }
}
