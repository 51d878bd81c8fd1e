import Foundation

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes the calls that steps name, and keeps the requests under way by the names of the calls that made them.
struct VectorRequests: Sendable {
    private(set) var made: [String: Pending] = [:]
    /// Names by the ids of the requests.
    private(set) var names: [String: String] = [:]

    mutating func keep(_ request: Pending, _ name: String) {
        made[name] = request
        names[request.id] = name
    }

    /// - Returns: the result as steps describe it, and a request that the call made.
    func perform(_ step: JSONValue, _ client: PosternClient) async throws -> (JSONValue, Pending?) {
        let factor: SecondFactor? =
            step["totp"]?.string.map(SecondFactor.totp) ?? step["recoveryCode"]?.string.map(SecondFactor.recoveryCode)
        let (email, code) = (step["email"]?.string ?? "", step["code"]?.string ?? "")
        let names = step["firstName"]?.string.map { Names(first: $0) }
        switch step["do"]?.string {
        case "accessToken":
            let token = try await client.accessToken(for: VectorDocument.audience(step["audience"]))
            return (["token": .string(token.value)], nil)
        case "send":
            guard let url = URL(string: step["url"]?.string ?? "") else { throw VectorDifference("no URL") }
            let (_, response) = try await client.send(URLRequest(url: url))
            return (["status": .number(Double(response.statusCode))], nil)
        case "signOut":
            try await client.signOut(step["scope"]?.string == "everywhere" ? .everywhere : .thisSession)
            return ([:], nil)
        case "adopt": return try await user(client.adopt(refreshToken: step["refreshToken"]?.string ?? ""))
        case "requestCode": return try await made(code: client.requestCode(to: .email(email), names: names))
        case "requestLink": return try await made(signIn: client.requestLink(to: .email(email)))
        case "requestApproval": return try await made(signIn: client.requestApproval(of: step["hint"]?.string ?? ""))
        case "requestDeviceSignIn": return try await made(signIn: client.requestDeviceSignIn())
        case "resend":
            switch try request(step) {
            case .code(let request): return (try await made(code: client.resend(request)).0, nil)
            case .signIn(let request): return (try await made(signIn: client.resend(request)).0, nil)
            }
        case "pending":
            let listed = try await client.pending.map { JSONValue.string(self.names[$0.id] ?? $0.id) }
            return (["pending": .array(listed)], nil)
        case "forget":
            try await client.forget(request(step))
            return ([:], nil)
        case "signIn": return try await user(client.signIn(code: code, for: codeRequest(step), secondFactor: factor))
        case "wait":
            guard case .signIn(let request) = try request(step) else { throw VectorDifference("no sign-in") }
            return try await user(client.wait(for: request, secondFactor: factor))
        case "open":
            guard let url = URL(string: step["url"]?.string ?? "") else { throw VectorDifference("no URL") }
            guard let found = try await client.open(url, secondFactor: factor) else { return (["none": true], nil) }
            return user(found)
        case "stepUp":
            let challenge = StepUpChallenge(levels: step["levels"]?.strings ?? [], maxAge: step["maxAge"]?.integer)
            return try await user(client.stepUp(challenge, by: .code(code, for: codeRequest(step), factor)))
        default: throw VectorDifference("a call that this runner does not know")
        }
    }

    private func request(_ step: JSONValue) throws -> Pending {
        guard let found = made[step["of"]?.string ?? ""] else { throw VectorDifference("no such request") }
        return found
    }

    private func codeRequest(_ step: JSONValue) throws -> CodeRequest {
        guard case .code(let found) = try request(step) else { throw VectorDifference("no request for a code") }
        return found
    }

    private func user(_ user: User) -> (JSONValue, Pending?) { (["user": .string(user.id)], nil) }

    private func made(code: CodeRequest) -> (JSONValue, Pending?) { (["made": "code"], .code(code)) }

    private func made(signIn: PendingSignIn) -> (JSONValue, Pending?) {
        var members: [String: JSONValue] = ["made": "signIn"]
        members["matchNumber"] = signIn.matchNumber.map(JSONValue.string)
        members["userCode"] = signIn.userCode.map(JSONValue.string)
        return (.object(members), .signIn(signIn))
    }
}

extension Pending {
    var id: String {
        switch self {
        case .code(let request): request.id
        case .signIn(let request): request.id
        }
    }
}
