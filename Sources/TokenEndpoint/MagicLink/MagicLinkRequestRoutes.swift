import Grants
import HTTPTypes

/// `POST /api/account/magic-link/request`: the same answer for known and unknown addresses, at a fixed time.
struct MagicLinkRequestRoutes: Sendable {
    let requests: MagicLinkRequests

    var routes: [Route] {
        [
            Route("/api/account/magic-link/request", [.post: { try await request($0) }])
                .uniform(.accepted).errors(.native)
        ]
    }

    private func request(_ exchange: Exchange) async throws -> Answer {
        let receipt = try await requests.record(
            Self.decode(exchange), realm: exchange.realm, source: try exchange.sourceOfAnonymous())
        return Self.answer(receipt)
    }

    private static func decode(_ exchange: Exchange) async throws -> MagicLinkRequests.Request {
        let body = try await exchange.json()
        try exchange.requireNativeGrants()
        guard let email = try body.string("Email").flatMap({ EmailAddress($0) }) else {
            throw Refusal(.error(.badRequest, "Email is invalid."))
        }
        return MagicLinkRequests.Request(
            email: email, clientID: try body.string("ClientId"), authSession: try body.string("AuthSession"),
            idTokenHint: try body.string("IdTokenHint"))
    }

    private static func answer(_ receipt: MagicLinkRequests.Receipt) -> Answer {
        var object = JSONWriter()
        object.member("Message", "If your email is registered, you will receive a login link.")
        object.member("AuthSession", receipt.authSession)
        object.member("ExpiresIn", receipt.expiresIn)
        object.member("ResendAfter", receipt.resendAfter)
        object.member("Interval", receipt.interval)
        object.member("MatchNumber", receipt.matchNumber)
        return Answer(json: object.finish())
    }
}
