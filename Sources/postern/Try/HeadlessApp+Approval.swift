import Encoding
import Foundation
import Grants

extension HeadlessApp {
    /// The answer of `/connect/bc-authorize`.
    struct ApprovalRequest: Decodable {
        let auth_req_id: String
        let interval: Int
        let match_number: String?
    }

    /// An item of the inbox.
    struct Approval: Decodable {
        let Id: String
        let Event: String
        let ClientId: String
        let BindingMessage: String?
        let Challenge: String
    }

    /// Makes a key a trusted device of the user of `tokens`. - Returns: the device's id.
    func addDevice(_ key: ProofKey, tokens: Tokens) async throws -> String {
        struct Added: Decodable { let Id: String }
        let added: Added = try decode(
            try await post("/connect/devices", tokens: tokens, proving: key) { proof in
                var body = JSONWriter(reserving: 1024)
                body.member("Proof", proof)
                body.member("DisplayName", "Headless device")
                return String(decoding: body.finish(), as: UTF8.self)
            })
        return added.Id
    }

    /// Asks the user's devices for an approval.
    func askForApproval() async throws -> ApprovalRequest {
        try decode(
            try await post(
                "/connect/bc-authorize",
                form: [("client_id", options.client), ("scope", options.scope), ("login_hint", options.email)]))
    }

    /// One poll; `nil` while no device has answered.
    func poll(_ request: ApprovalRequest) async throws -> Tokens? {
        struct Failure: Decodable { let error: String }
        let (status, answer) = try await attempt(
            .post, "/connect/token", contentType: "application/x-www-form-urlencoded",
            body: Self.encode([
                ("grant_type", "urn:openid:params:grant-type:ciba"), ("client_id", options.client),
                ("auth_req_id", request.auth_req_id),
            ]))
        if status == 200 { return try decodeTokens(answer) }
        let failure: Failure = try decode(answer)
        guard failure.error == "authorization_pending" else {
            throw CommandFailure("the server answered \(failure.error)")
        }
        return nil
    }

    /// The newest item, waiting for it if need be. The app has to hold the key of the device.
    func inbox() async throws -> Approval {
        struct Inbox: Decodable { let Approvals: [Approval] }
        for _ in 0..<4 {
            let inbox: Inbox = try decode(try await exchange(.get, "/connect/approvals?wait=5"))
            if let item = inbox.Approvals.last { return item }
        }
        throw CommandFailure("no request came: is the device on probation, or has the user denied some lately?")
    }

    /// Approves an item with every value that it showed.
    func approve(_ item: Approval, number: String?, with key: ProofKey) async throws {
        struct Metadata: Decodable { let issuer: String }
        guard let metadata: Metadata = try await quietly(get: "/.well-known/openid-configuration") else {
            throw CommandFailure("the server has no discovery document")
        }
        var claims = JSONWriter(reserving: 512)
        claims.member("aud", metadata.issuer)
        claims.member("iat", Int(Date().timeIntervalSince1970))
        claims.member("approval_id", item.Id)
        claims.member("challenge", item.Challenge)
        claims.member("decision", "approve")
        claims.member("client_id", item.ClientId)
        claims.member("event", item.Event)
        claims.member("binding_message", item.BindingMessage)
        claims.member("match_number", number)
        var body = JSONWriter(reserving: 1024)
        body.member("Response", try key.sign(type: "postern-approval+jwt", claims.finish()))
        _ = try await post("/connect/approvals/\(item.Id)", json: String(decoding: body.finish(), as: UTF8.self))
    }
}
