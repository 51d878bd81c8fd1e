import Encoding
import Foundation
import Grants

extension HeadlessApp {
    /// The answer of `/v3/unify`.
    struct Started: Decodable {
        let authToken: String
        let correlationId: String
    }

    /// The answer of a step of the page.
    struct Step: Decodable { let state: String }

    /// Starts a transaction about a phone that the person holds.
    func unify(_ phone: String, _ token: Tokens) async throws -> Started {
        var body = JSONWriter()
        body.member("phoneNumber", phone)
        body.member("possessionType", "mobile")
        body.member("allowOTPRetry", true)
        return try decode(
            try await post("/v3/unify", json: String(decoding: body.finish(), as: UTF8.self), tokens: token))
    }

    /// What came of it: `pending`, `true`, `false` or `possession_required`.
    func unifyStatus(_ started: Started, _ token: Tokens) async throws -> String {
        struct Status: Decodable { let success: String }
        var body = JSONWriter()
        body.member("correlationId", started.correlationId)
        let status: Status = try decode(
            try await post("/v3/unify-status", json: String(decoding: body.finish(), as: UTF8.self), tokens: token))
        return status.success
    }

    /// One step of the page. The app has to hold the page's key.
    func possession(_ step: String, _ json: String, _ authToken: String) async throws -> Step {
        let token = Tokens(accessToken: authToken, refreshToken: nil, tokenType: "DPoP")
        return try decode(try await post("/connect/possession/\(step)", json: json, tokens: token))
    }
}
