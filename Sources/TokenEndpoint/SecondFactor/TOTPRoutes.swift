import Encoding
import Grants
import HTTPTypes
import Persistence

/// TOTP enrolment and removal. The realm's flag is checked first, as for passkeys.
struct TOTPRoutes: Sendable {
    let secondFactors: SecondFactors
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route(
                "/connect/totp/enroll/begin",
                [.post: .account(bearer, for: .secondFactor, signedInWithin: recently) { try await begin($0, $1) }]),
            Route(
                "/connect/totp/enroll",
                [.post: .account(bearer, for: .secondFactor, signedInWithin: recently) { try await enrol($0, $1) }]),
            Route(
                "/connect/totp",
                [.delete: .account(bearer, for: .secondFactor, signedInWithin: recently) { try await remove($0, $1) }]),
        ].map { $0.requiring(.nativeGrants).cors(.clients).logged(as: "totp") }
    }

    private var recently: Int { BearerAuthentication.stepUpAge }

    private func begin(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let begun = try secondFactors.begin(realm: exchange.realm, verified: caller.verified)
        var object = JSONWriter()
        object.member("ceremonyId", begun.ceremonyID)
        object.member("secret", begun.secret)
        object.member("uri", begun.uri)
        return Answer(json: object.finish())
    }

    private func enrol(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        guard let ceremonyID = try body.string("ceremonyId"), let code = try body.string("code").map(TypedCode.init)
        else {
            throw SecondFactors.Failure.code
        }
        let recoveryCodes = try await secondFactors.enrol(
            ceremonyID: ceremonyID, code: code, realm: exchange.realm, verified: caller.verified,
            source: exchange.source)
        var object = JSONWriter()
        object.member("recoveryCodes", recoveryCodes)
        return Answer(json: object.finish())
    }

    private func remove(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        try await secondFactors.remove(realm: exchange.realm, verified: caller.verified, source: exchange.source)
        return Answer(.noContent)
    }
}

extension SecondFactors.Failure: AnswerableError {
    var answer: Answer {
        switch self {
        case .session: .message(.badRequest, "Enrollment session expired. Please try again.")
        case .code: .message(.badRequest, "TOTP enrollment failed.")
        // The account has a second factor, which this session has not proven.
        case .stepUp: .stepUp(maximumAge: BearerAuthentication.stepUpAge, context: .twoFactors)
        case .signedOut: .bearerChallenge(invalidToken: true)
        case .none: Answer(.notFound)
        }
    }

    var reason: String? { "\(self)" }
}
