import Encoding
import Grants
import HTTPTypes
import Texts

/// `POST /api/account/native/otp/request`, `…/register` and `/api/account/magic-link/request`: one uniform answer each,
/// at a fixed time, whether the address has an account or not.
struct SignInRequestRoutes: Sendable {
    let requests: SignInRequests
    let proofs: Proofs
    let code: any SentFactor
    let registration: any SentFactor
    let link: any SentFactor

    var routes: [Route] {
        let codes = [
            Route(
                "/api/account/native/otp/request", [.post: .anonymous { try await request(code, Message.code, $0) }]),
            Route(
                "/api/account/native/register",
                [.post: .anonymous { try await request(registration, Message.register, $0) }]),
        ].map { $0.logged(as: "otp request") }
        let links = Route(
            "/api/account/magic-link/request", [.post: .anonymous { try await request(link, Message.link, $0) }]
        )
        .logged(as: "magic link request")
        return (codes + [links]).map { $0.uniform(.accepted).errors(.native).cors(.clients) }
    }

    private enum Message {
        static let code = "If your email is registered, you will receive a verification code."
        static let register = "If registration is available, you will receive a verification code."
        static let link = "If your email is registered, you will receive a login link."

        static func text(_ message: String, for address: MessageAddress) -> String {
            if case .email = address { return message }
            return message.replacing("email", with: "phone number")
        }
    }

    private func request(_ factor: any SentFactor, _ message: String, _ exchange: Exchange) async throws -> Answer {
        let form = try await Self.decode(exchange, factor)
        let receipt: SignInRequests.Receipt
        do {
            let proof = try exchange.proof(by: proofs)
            receipt = try await proofs.using(in: exchange.realm) {
                try await requests.record(
                    form, for: factor, realm: exchange.realm, source: try exchange.sourceOfAnonymous(), proof: proof)
            }
        } catch is SignInRequests.SendLimit {
            throw Refusal(.error(.badRequest, "send_limit"))
        }
        var object = JSONWriter()
        object.member("Message", Message.text(message, for: form.address))
        object.member("AuthSession", receipt.authSession)
        object.member("ExpiresIn", receipt.expiresIn)
        object.member("ResendAfter", receipt.resendAfter)
        if let polling = receipt.polling {
            object.member("Interval", polling.interval)
            object.member("MatchNumber", polling.matchNumber)
        }
        if case .phone = form.address { object.member("SendsLeft", receipt.sendsLeft) }
        return Answer(json: object.finish())
    }

    private static func decode(_ exchange: Exchange, _ factor: any SentFactor) async throws -> SignInRequests.Form {
        let body = try await exchange.json()
        exchange.nameClient(try? body.string("ClientId"))
        try Requirement.nativeGrants.require(in: exchange.realm)
        let address = try MessageAddress(body, exchange.realm, channels: factor.phoneChannels)
        let fields = exchange.realm.registrationFields
        let takesNames = factor.takesNames
        return SignInRequests.Form(
            address: address,
            firstName: takesNames ? try name(body, "FirstName", fields.firstName) : nil,
            lastName: takesNames ? try name(body, "LastName", fields.lastName) : nil,
            clientID: try body.string("ClientId"), authSession: try body.string("AuthSession"),
            idTokenHint: try body.string("IdTokenHint"),
            locale: Language.preferred(in: exchange.request.headers[.acceptLanguage])?.tag)
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
}
