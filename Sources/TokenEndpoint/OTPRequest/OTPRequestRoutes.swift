import Grants
import HTTPTypes
import Logging

/// `POST /api/account/native/otp/request` (contract §4.2): one uniform answer, whoever asks, at a fixed time.
struct OTPRequestRoutes: Sendable {
    let requests: OTPRequests
    let deadline: UniformDeadline

    var routes: [Route] { [Route("/api/account/native/otp/request", [.post: { await request($0) }])] }

    private func request(_ exchange: Exchange) async -> Answer {
        do {
            let receipt = try await requests.record(decode(exchange), realm: exchange.realm, source: exchange.source)
            await deadline.hold(exchange)
            return Self.answer(receipt)
        } catch let refusal as Refusal {
            return refusal.answer
        } catch let error as TokenError {
            exchange.logger.log(
                level: error.code == .temporarilyUnavailable ? .warning : .info, "otp request",
                metadata: [
                    "realm": "\(exchange.realm.slug)", "outcome": "\(error.code.rawValue)", "reason": "\(error.reason)",
                ])
            return error.code == .invalidClient ? .error(.badRequest, "invalid_client") : .oauth(error)
        } catch {
            return .unavailable
        }
    }

    private func decode(_ exchange: Exchange) async throws -> OTPRequests.Request {
        let body = try await exchange.json()
        guard exchange.realm.nativeGrantsEnabled else {
            throw Refusal(.nativeGrantsDisabled)
        }
        guard let email = try body.string("Email").flatMap({ EmailAddress($0) }) else {
            throw Refusal(.error(.badRequest, "Email is invalid."))
        }
        let firstName = try Self.name(body, "FirstName", required: exchange.realm.registrationFields.firstName)
        let lastName = try Self.name(body, "LastName", required: exchange.realm.registrationFields.lastName)
        return OTPRequests.Request(
            email: email, firstName: firstName, lastName: lastName,
            clientID: try body.string("ClientId"), authSession: try body.string("AuthSession"))
    }

    /// A person's name: bounded, and free of anything that could break a line or hide text in a mail.
    private static func name(_ body: JSONMembers, _ member: String, required: RegistrationFields.Rule) throws -> String?
    {
        let label = member == "FirstName" ? "Firstname" : "Lastname"
        let value = try body.string(member).map { String($0.trimmingSpaces) }.flatMap { $0.isEmpty ? nil : $0 }
        guard let value else {
            guard required != .required else { throw Refusal(.error(.badRequest, "\(label) is required.")) }
            return nil
        }
        guard value.utf8.count <= 200, PersonalText.isPrintable(value) else {
            throw Refusal(.error(.badRequest, "\(label) is invalid."))
        }
        return value
    }

    private static func answer(_ receipt: OTPRequests.Receipt) -> Answer {
        var object = JSONWriter()
        object.member("Message", "If your email is registered, you will receive a verification code.")
        object.member("AuthSession", receipt.authSession)
        object.member("ExpiresIn", receipt.expiresIn)
        object.member("ResendAfter", receipt.resendAfter)
        return Answer(json: object.finish())
    }
}
