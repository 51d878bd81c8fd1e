import Grants
import HTTPTypes
import Persistence

/// `POST /api/account/native/otp/request` and `…/register`: each gives the same answer for known and unknown addresses,
/// at a fixed time.
struct OTPRequestRoutes: Sendable {
    let requests: OTPRequests

    var routes: [Route] {
        [
            Route("/api/account/native/otp/request", [.post: { try await request(.otp, $0) }])
                .uniform(.accepted).errors(.native),
            Route("/api/account/native/register", [.post: { try await request(.register, $0) }])
                .uniform(.accepted).errors(.native),
        ]
    }

    private typealias Kind = SignInStore.CodeRequest.Kind

    private func request(_ kind: Kind, _ exchange: Exchange) async throws -> Answer {
        let request = try await decode(kind, exchange)
        let receipt = try await requests.record(
            request, realm: exchange.realm, source: try exchange.sourceOfAnonymous())
        return Self.answer(kind, receipt)
    }

    private func decode(_ kind: Kind, _ exchange: Exchange) async throws -> OTPRequests.Request {
        let body = try await exchange.json()
        try exchange.requireNativeGrants()
        guard let email = try body.string("Email").flatMap({ EmailAddress($0) }) else {
            throw Refusal(.error(.badRequest, "Email is invalid."))
        }
        let firstName = try Self.name(body, "FirstName", exchange.realm.registrationFields.firstName)
        let lastName = try Self.name(body, "LastName", exchange.realm.registrationFields.lastName)
        return OTPRequests.Request(
            kind, email: email, firstName: firstName, lastName: lastName,
            clientID: try body.string("ClientId"), authSession: try body.string("AuthSession"),
            idTokenHint: try body.string("IdTokenHint"))
    }

    /// A person's name, which an account can be stored with.
    private static func name(
        _ body: JSONMembers, _ member: String, _ rule: RegistrationFields.Rule
    ) throws -> PersonName? {
        guard rule != .off else { return nil }
        let label = member == "FirstName" ? "Firstname" : "Lastname"
        guard let typed = try body.string(member), !PersonName.isBlank(typed) else {
            guard rule != .required else { throw Refusal(.error(.badRequest, "\(label) is required.")) }
            return nil
        }
        guard let name = PersonName(typed) else { throw Refusal(.error(.badRequest, "\(label) is invalid.")) }
        return name
    }

    private static func answer(_ kind: Kind, _ receipt: OTPRequests.Receipt) -> Answer {
        let message =
            switch kind {
            case .otp: "If your email is registered, you will receive a verification code."
            case .register: "If registration is available, you will receive a verification code."
            }
        var object = JSONWriter()
        object.member("Message", message)
        object.member("AuthSession", receipt.authSession)
        object.member("ExpiresIn", receipt.expiresIn)
        object.member("ResendAfter", receipt.resendAfter)
        return Answer(json: object.finish())
    }
}
