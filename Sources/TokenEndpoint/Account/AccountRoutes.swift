import Grants
import HTTPTypes
import Logging
import Persistence

/// A user's own data: read, renamed and deleted by the app. Works with native grants off, because accounts outlive
/// them.
struct AccountRoutes: Sendable {
    let accounts: AccountStore
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route(
                "/connect/account",
                [
                    .get: { await answer($0, read) }, .patch: { await answer($0, rename) },
                    .delete: { await answer($0, delete) },
                ])
        ]
    }

    private func answer(
        _ exchange: Exchange, _ handler: (Exchange, VerifiedAccessToken) async throws -> Answer
    ) async -> Answer {
        do {
            return try await handler(exchange, try await bearer.authenticate(exchange))
        } catch let refusal as Refusal {
            return refusal.answer
        } catch {
            exchange.logger.warning("account", metadata: ["realm": "\(exchange.realm.slug)", "error": "\(error)"])
            return .unavailable
        }
    }

    private func read(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        let user = verified.session.user
        guard let account = try await accounts.account(realm: exchange.realm.id, user: user) else {
            return .bearerChallenge(invalidToken: true)
        }
        var object = JSONWriter()
        object.member("Sub", user.description)
        object.member("Email", account.email)
        object.member("EmailVerified", account.emailVerified)
        object.nullable("FirstName", account.firstName)
        object.nullable("LastName", account.lastName)
        object.member("CreatedAt", Timestamp.text(account.createdAt))
        object.member("HasTotp", account.hasTOTP)
        object.member("Passkeys", account.passkeys)
        object.member("Sessions", account.sessions)
        return Answer(json: object.finish())
    }

    private func rename(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        let body = try await exchange.json()
        let fields = exchange.realm.registrationFields
        let first = try Self.change(body, "FirstName", fields.firstName)
        let last = try Self.change(body, "LastName", fields.lastName)
        if first != .none || last != .none {
            guard
                try await accounts.setNames(
                    realm: exchange.realm.id, user: verified.session.user, session: verified.token.session,
                    first: first, last: last, source: exchange.source)
            else { return .bearerChallenge(invalidToken: true) }
        }
        return try await read(exchange, verified)
    }

    private func delete(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        let deletion = try await accounts.delete(
            realm: exchange.realm.id, user: verified.session.user, session: verified.token.session,
            maximumAge: Int32(BearerAuthentication.stepUpAge), source: exchange.source)
        return switch deletion {
        case .deleted: Answer(.noContent)
        case .stepUp: .stepUp(maximumAge: BearerAuthentication.stepUpAge)
        case .signedOut: .bearerChallenge(invalidToken: true)
        }
    }

    /// Absent: the name stays. `null`: it is removed, unless the realm requires it. A text: checked as in a
    /// registration.
    private static func change(
        _ body: JSONMembers, _ member: String, _ rule: RegistrationFields.Rule
    ) throws(Refusal) -> AccountStore.NameChange {
        let label = member == "FirstName" ? "Firstname" : "Lastname"
        if body.isNull(member) {
            guard rule != .required else { throw Refusal(.error(.badRequest, "\(label) is required.")) }
            return .remove
        }
        guard let given = try body.string(member) else { return .none }
        guard let name = PersonName(given) else { throw Refusal(.error(.badRequest, "\(label) is invalid.")) }
        return .set(name.text)
    }
}
