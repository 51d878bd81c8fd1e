import Encoding
import Grants
import HTTPTypes
import Persistence

/// A user's own data: read, renamed and deleted by the app. Works with native grants off, because accounts outlive
/// them.
struct AccountRoutes: Sendable {
    let account: OwnAccount
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route(
                "/connect/account",
                [
                    .get: .account(bearer) { try await answer($0, $1) },
                    .patch: .account(bearer) { try await rename($0, $1) },
                    .delete: .account(bearer) { try await delete($0, $1) },
                ])
        ].map { $0.cors(.clients).logged(as: "account") }
    }

    private func answer(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let account = try await account.read(realm: exchange.realm, verified: caller.verified) else {
            return .bearerChallenge(invalidToken: true)
        }
        var object = JSONWriter()
        object.member("Sub", caller.user.description)
        object.nullable("Email", account.email)
        object.member("EmailVerified", account.emailVerified)
        object.nullable("Phone", account.phone)
        object.member("PhoneVerified", account.phone != nil)
        object.nullable("FirstName", account.firstName)
        object.nullable("LastName", account.lastName)
        object.member("CreatedAt", Timestamp.text(account.createdAt))
        object.member("HasTotp", account.hasTOTP)
        object.member("Passkeys", account.passkeys)
        object.member("Sessions", account.sessions)
        return Answer(json: object.finish())
    }

    private func rename(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        let fields = exchange.realm.registrationFields
        let first = try Self.change(body, "FirstName", fields.firstName)
        let last = try Self.change(body, "LastName", fields.lastName)
        if first != .none || last != .none {
            guard
                try await account.rename(
                    first: first, last: last, realm: exchange.realm, verified: caller.verified, source: exchange.source)
            else { return .bearerChallenge(invalidToken: true) }
        }
        return try await answer(exchange, caller)
    }

    private func delete(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let deletion = try await account.delete(
            signedInWithin: BearerAuthentication.stepUpAge, realm: exchange.realm, verified: caller.verified,
            source: exchange.source)
        return switch deletion {
        case .deleted: Answer(.noContent)
        case .stepUp: .stepUp(after: caller.verified.session, maximumAge: BearerAuthentication.stepUpAge)
        case .signedOut: .bearerChallenge(invalidToken: true)
        }
    }

    /// Absent: the name stays. `null`: it is removed, unless the realm requires it. A text: checked as in a
    /// registration, and ignored as there when the realm wants no such name.
    private static func change(
        _ body: JSONMembers, _ member: String, _ rule: RegistrationFields.Rule
    ) throws(Refusal) -> AccountStore.NameChange {
        let label = member == "FirstName" ? "Firstname" : "Lastname"
        if body.isNull(member) {
            guard rule != .required else { throw Refusal(.error(.badRequest, "\(label) is required.")) }
            return .remove
        }
        guard let given = try body.string(member), rule != .off else { return .none }
        guard let name = PersonName(given) else { throw Refusal(.error(.badRequest, "\(label) is invalid.")) }
        return .set(name.text)
    }
}
