import Encoding
import Grants
import HTTPTypes
import NIOCore
import Persistence

/// Passkey ceremonies and management. The realm's flag is checked first: with native grants off these endpoints do not
/// exist.
struct PasskeyRoutes: Sendable {
    let passkeys: Passkeys
    let proofs: Proofs
    let bearer: BearerAuthentication
    let forms: SentForms

    var routes: [Route] {
        [
            Route("/connect/passkey/begin", [.post: .anonymous { try await beginLogin($0) }]).errors(.native),
            Route(
                "/connect/passkey/enroll/begin",
                [.post: .account(bearer, for: .passkeys, signedInWithin: recently) { try await beginEnrolment($0, $1) }]
            ),
            Route(
                "/connect/passkey/enroll",
                [.post: .account(bearer, for: .passkeys, signedInWithin: recently) { try await enrol($0, $1) }]),
            Route("/connect/passkey", [.get: .account(bearer, for: .passkeys) { try await list($0, $1) }]),
            Route(
                prefix: "/connect/passkey/",
                [
                    .patch: .account(bearer, for: .passkeys) { try await rename($0, $1) },
                    .delete: .account(bearer, for: .passkeys, signedInWithin: recently) { try await delete($0, $1) },
                ]),
        ].map { $0.requiring(.nativeGrants).cors(.clients).logged(as: "passkey") }
    }

    private var recently: Int { BearerAuthentication.stepUpAge }

    private func beginLogin(_ exchange: Exchange) async throws -> Answer {
        let form = try exchange.form()
        guard let clientID = form["client_id"] else { throw TokenError.missing("client_id") }
        exchange.nameClient(clientID)
        let client = try passkeys.client(named: clientID, realm: exchange.realm)
        let proof = try exchange.proof(by: proofs)
        let rpID = try rpID(exchange.realm, client)
        let options = try await proofs.using(in: exchange.realm) {
            try await passkeys.beginLogin(
                realm: exchange.realm, client: client, rpID: rpID, source: try exchange.sourceOfAnonymous(),
                proof: proof)
        }
        return Answer(json: options.json)
    }

    private func beginEnrolment(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let options = try await passkeys.beginEnrolment(
            realm: exchange.realm, rpID: try rpID(exchange.realm, caller.verified.client),
            owner: Passkeys.Owner(caller.verified))
        return options.map { Answer(json: $0.json) } ?? .bearerChallenge(invalidToken: true)
    }

    private func enrol(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        let displayName = try Self.displayName(body, required: false)
        guard let ceremonyID = try body.string("ceremonyId"), let attestation = body.object("attestation") else {
            return .message(.badRequest, "Passkey enrollment failed.")
        }
        let form = SentForms.Form(
            of: [Array("passkey".utf8), caller.verified.token.owner.bytes],
            saying: [Array(try exchange.body().readableBytesView)])
        return try await forms.answer(form, exchange) {
            let id = try await passkeys.enrol(
                ceremonyID: ceremonyID, attestation: attestation, displayName: displayName, realm: exchange.realm,
                owner: Passkeys.Owner(caller.verified), source: exchange.source)
            var object = JSONWriter()
            object.member("Message", "Passkey enrolled successfully.")
            object.member("Id", id.description)
            return SentForms.Outcome(Answer(json: object.finish()), .repetitions)
        }
    }

    private func list(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let listed = try await passkeys.list(realm: exchange.realm, user: caller.user)
        return Answer(json: Array("[".utf8) + listed.map(\.json).joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func rename(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let name = try Self.displayName(try await exchange.json(), required: true) ?? ""
        guard let id = UUIDValue(exchange.pathParameter),
            let item = try await passkeys.rename(
                realm: exchange.realm, verified: caller.verified, id: id, to: name)
        else { return Answer(.notFound) }
        return Answer(json: item.json)
    }

    private func delete(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let id = UUIDValue(exchange.pathParameter),
            try await passkeys.delete(realm: exchange.realm, verified: caller.verified, id: id, source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }

    private func rpID(_ realm: Realm, _ client: Client) throws(Refusal) -> String {
        guard let rpID = realm.rpID(for: client) else {
            throw Refusal(
                .problem(
                    .serviceUnavailable, title: "Passkey.Unavailable",
                    detail: "The realm has no primary domain and the client no RP-ID."))
        }
        return rpID
    }

    /// 1 to 64 code points.
    private static func displayName(_ body: JSONMembers, required: Bool) throws(Refusal) -> String? {
        guard let typed = try body.string("DisplayName") else {
            guard !required else { throw Refusal(.error(.badRequest, "DisplayName is required.")) }
            return nil
        }
        guard let name = NameText.read(typed, longest: 64) else {
            throw Refusal(.error(.badRequest, "DisplayName is invalid."))
        }
        return name
    }
}

extension Passkeys.EnrolmentFailure: AnswerableError {
    var answer: Answer {
        switch self {
        case .session: .message(.badRequest, "Enrollment session expired. Please try again.")
        case .refused: .message(.badRequest, "Passkey enrollment failed.")
        }
    }

    var reason: String? {
        switch self {
        case .session: nil
        case .refused(let reason): reason
        }
    }
}

extension PasskeyStore.Listed {
    /// The item of `GET /connect/passkey`.
    fileprivate var json: [UInt8] {
        var object = JSONWriter()
        object.member("Id", id.description)
        object.member("DisplayName", displayName ?? AuthenticatorNames.name(of: aaguid))
        object.member("CreatedAt", Timestamp.text(createdAt))
        object.member("LastUsedAt", lastUsedAt.map(Timestamp.text))
        object.member("RpId", rpID)
        object.member("Provider", AuthenticatorNames.name(of: aaguid))
        object.member("BackedUp", backupState)
        object.member("DeviceBound", !backupEligible)
        object.member("Transports", transports)
        return object.finish()
    }
}
