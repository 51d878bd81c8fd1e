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
                [.get: { try await read($0) }, .patch: { try await rename($0) }, .delete: { try await delete($0) }])
        ].map { $0.cors(.clients).logged(as: "account") }
    }

    private func read(_ exchange: Exchange) async throws -> Answer {
        try await answer(exchange, bearer.authenticate(exchange, for: .account))
    }

    private func answer(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        let user = verified.session.user
        guard let account = try await self.account.read(realm: exchange.realm, verified: verified) else {
            return .bearerChallenge(invalidToken: true)
        }
        var object = JSONWriter()
        object.member("Sub", user.description)
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

    private func rename(_ exchange: Exchange) async throws -> Answer {
        let verified = try await bearer.authenticate(exchange, for: .account)
        let body = try await exchange.json()
        let fields = exchange.realm.registrationFields
        let first = try Self.change(body, "FirstName", fields.firstName)
        let last = try Self.change(body, "LastName", fields.lastName)
        if first != .none || last != .none {
            guard
                try await account.rename(
                    first: first, last: last, realm: exchange.realm, verified: verified, source: exchange.source)
            else { return .bearerChallenge(invalidToken: true) }
        }
        return try await answer(exchange, verified)
    }

    private func delete(_ exchange: Exchange) async throws -> Answer {
        let verified = try await bearer.authenticate(exchange, for: .account)
        let deletion = try await account.delete(
            signedInWithin: BearerAuthentication.stepUpAge, realm: exchange.realm, verified: verified,
            source: exchange.source)
        return switch deletion {
        case .deleted: Answer(.noContent)
        case .stepUp: .stepUp(after: verified.session, maximumAge: BearerAuthentication.stepUpAge)
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
