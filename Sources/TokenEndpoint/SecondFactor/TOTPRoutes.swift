import Grants
import HTTPTypes
import Logging
import Persistence

/// TOTP enrolment and removal. The realm's flag is checked first, as for passkeys.
struct TOTPRoutes: Sendable {
    let secondFactors: SecondFactors
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/connect/totp/enroll/begin", [.post: { await answer($0, begin) }]),
            Route("/connect/totp/enroll", [.post: { await answer($0, enrol) }]),
            Route("/connect/totp", [.delete: { await answer($0, remove) }]),
        ]
    }

    /// Every failure of a handler is an answer.
    private func answer(_ exchange: Exchange, _ handler: (Exchange) async throws -> Answer) async -> Answer {
        do {
            guard exchange.realm.nativeGrantsEnabled else { return .nativeGrantsDisabled }
            return try await handler(exchange)
        } catch let refusal as Refusal {
            return refusal.answer
        } catch let failure as SecondFactors.Failure {
            return answer(exchange, failure)
        } catch let error as TokenError {
            return .oauth(error)
        } catch {
            exchange.logger.warning("totp", metadata: ["realm": "\(exchange.realm.slug)", "error": "\(error)"])
            return .unavailable
        }
    }

    private func answer(_ exchange: Exchange, _ failure: SecondFactors.Failure) -> Answer {
        exchange.logger.info("totp refused", metadata: ["realm": "\(exchange.realm.slug)", "reason": "\(failure)"])
        return switch failure {
        case .session: .message(.badRequest, "Enrollment session expired. Please try again.")
        case .code: .message(.badRequest, "TOTP enrollment failed.")
        case .stepUp: .stepUp(maximumAge: BearerAuthentication.stepUpAge)
        case .signedOut: .bearerChallenge(invalidToken: true)
        case .none: Answer(.notFound)
        }
    }

    private func begin(_ exchange: Exchange) async throws -> Answer {
        let (verified, client) = try await authenticate(exchange)
        let begun = try secondFactors.begin(realm: exchange.realm, client: client, verified: verified)
        var object = JSONWriter()
        object.member("ceremonyId", begun.ceremonyID)
        object.member("secret", begun.secret)
        object.member("uri", begun.uri)
        return Answer(json: object.finish())
    }

    private func enrol(_ exchange: Exchange) async throws -> Answer {
        let (verified, client) = try await authenticate(exchange)
        let body = try await exchange.json()
        guard let ceremonyID = try body.string("ceremonyId"), let code = try body.string("code") else {
            throw SecondFactors.Failure.code
        }
        let recoveryCodes = try await secondFactors.enrol(
            ceremonyID: ceremonyID, code: code, realm: exchange.realm, client: client, verified: verified,
            source: exchange.source)
        var object = JSONWriter()
        object.member("recoveryCodes", recoveryCodes)
        return Answer(json: object.finish())
    }

    private func remove(_ exchange: Exchange) async throws -> Answer {
        let (verified, _) = try await authenticate(exchange)
        try await secondFactors.remove(realm: exchange.realm, verified: verified, source: exchange.source)
        return Answer(.noContent)
    }

    /// A recent sign-in, by a client of which a sign-in may ask for a code of the authenticator.
    private func authenticate(_ exchange: Exchange) async throws(Refusal) -> (VerifiedAccessToken, Client) {
        let verified = try await bearer.authenticate(exchange)
        guard let client = exchange.realm.clients[verified.session.clientID], client.mayUseSecondFactor else {
            throw Refusal(.insufficientScope())
        }
        guard verified.session.now - verified.session.authTime <= Double(BearerAuthentication.stepUpAge) else {
            throw Refusal(.stepUp(maximumAge: BearerAuthentication.stepUpAge))
        }
        return (verified, client)
    }
}

extension Client {
    /// Whether one of its grants takes a `totp_code`.
    fileprivate var mayUseSecondFactor: Bool {
        mayUse(.otp) || mayUse(.magic)
    }
}
