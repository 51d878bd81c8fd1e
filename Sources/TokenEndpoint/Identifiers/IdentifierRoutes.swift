import Encoding
import Grants
import HTTPTypes
import Persistence
import Texts

/// `/connect/identifiers`: the addresses and phone numbers of the token's user.
struct IdentifierRoutes: Sendable {
    let identifiers: Identifiers
    let bearer: BearerAuthentication
    let forms: SentForms

    var routes: [Route] {
        [
            Route(
                "/connect/identifiers",
                [
                    .get: .account(bearer) { try await list($0, $1) },
                    .post: .account(bearer, signedInWithin: recently) { try await add($0, $1) },
                ]),
            Route(
                "/connect/identifiers/begin",
                [.post: .account(bearer, signedInWithin: recently) { try await begin($0, $1) }]),
            Route(
                prefix: "/connect/identifiers/",
                [
                    .patch: .account(bearer) { try await makePrimary($0, $1) },
                    .delete: .account(bearer, signedInWithin: recently) { try await remove($0, $1) },
                ]),
        ].map { $0.logged(as: "identifiers").cors(.clients) }
    }

    private var recently: Int { BearerAuthentication.stepUpAge }

    private func list(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let found = try await identifiers.list(realm: exchange.realm, user: caller.user)
        return Answer(json: Array("[".utf8) + found.map(Self.json).joined(separator: [0x2C]) + Array("]".utf8))
    }

    private func begin(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        let address = try MessageAddress(body, exchange.realm, channels: Channel.phones)
        let receipt = try await answering {
            try await identifiers.begin(
                address, authSession: try body.string("AuthSession"),
                locale: Language.preferred(in: exchange.request.headers[.acceptLanguage])?.tag,
                realm: exchange.realm, user: caller.user, client: caller.verified.client,
                source: exchange.source)
        }
        var object = JSONWriter()
        object.member("Message", "You will receive a verification code.")
        object.member("AuthSession", receipt.authSession)
        object.member("ExpiresIn", receipt.expiresIn)
        object.member("ResendAfter", receipt.resendAfter)
        object.member("SendsLeft", receipt.sendsLeft)
        return Answer(json: object.finish())
    }

    private func add(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        guard let handle = try body.string("AuthSession") else {
            throw Refusal(.error(.badRequest, "AuthSession is required."))
        }
        guard let code = try body.string("Code"), code.utf8.count <= TypedCode.maximumBytes else {
            throw Refusal(.error(.badRequest, "Code is required."))
        }
        let form = SentForms.Form(
            of: [Array("identifier".utf8), caller.verified.token.owner.bytes],
            saying: [Array(handle.utf8), Array(code.utf8)])
        return try await forms.answer(form, exchange) {
            let added = try await answering {
                try await identifiers.add(
                    authSession: handle, code: TypedCode(code), realm: exchange.realm, verified: caller.verified,
                    source: exchange.source)
            }
            return SentForms.Outcome(Answer(json: Self.json(added)), .repetitions)
        }
    }

    private func makePrimary(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        guard try body.bool("Primary") == true else {
            throw Refusal(.error(.badRequest, "Primary must be true."))
        }
        guard let id = UUIDValue(exchange.pathParameter),
            let changed = try await identifiers.makePrimary(id, realm: exchange.realm, verified: caller.verified)
        else { return Answer(.notFound) }
        return Answer(json: Self.json(changed))
    }

    private func remove(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let id = UUIDValue(exchange.pathParameter) else { return Answer(.notFound) }
        let removal = try await identifiers.remove(
            id, realm: exchange.realm, verified: caller.verified, source: exchange.source)
        return switch removal {
        case .removed: Answer(.noContent)
        case .unknown: Answer(.notFound)
        case .lastWayIn: .error(.conflict, "Identifier is the last way in.")
        }
    }

    private func answering<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let failure as Identifiers.Failure {
            let answer: Answer =
                switch failure {
                case .sendLimit: .error(.badRequest, "send_limit")
                case .tooMany: .error(.conflict, "Too many identifiers.")
                case .code: .error(.badRequest, "Invalid or expired code.")
                case .inUse: .error(.conflict, "Identifier is in use.")
                }
            throw Refusal(answer)
        }
    }

    private static func json(_ identifier: IdentifierStore.Identifier) -> [UInt8] {
        var object = JSONWriter()
        object.member("Id", identifier.id.description)
        object.member("Kind", identifier.kind)
        object.member("Value", identifier.value)
        object.member("Primary", identifier.isPrimary)
        object.member("ProvedAt", Timestamp.text(identifier.provedAt))
        return object.finish()
    }
}
