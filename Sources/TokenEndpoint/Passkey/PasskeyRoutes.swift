import Grants
import HTTPTypes
import Logging
import Persistence

/// Passkey ceremonies and management. The realm's flag is checked first: with native grants off these endpoints do not
/// exist.
struct PasskeyRoutes: Sendable {
    let passkeys: Passkeys
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/connect/passkey/begin", [.post: { await answer($0, beginLogin) }]),
            Route("/connect/passkey/enroll/begin", [.post: { await answer($0, beginEnrolment) }]),
            Route("/connect/passkey/enroll", [.post: { await answer($0, enrol) }]),
            Route("/connect/passkey", [.get: { await answer($0, list) }]),
            Route(
                prefix: "/connect/passkey/",
                [.patch: { await answer($0, rename) }, .delete: { await answer($0, delete) }]),
        ]
    }

    /// Every failure of a handler is an answer.
    private func answer(_ exchange: Exchange, _ handler: (Exchange) async throws -> Answer) async -> Answer {
        do {
            guard exchange.realm.nativeGrantsEnabled else { return .nativeGrantsDisabled }
            return try await handler(exchange)
        } catch let refusal as Refusal {
            return refusal.answer
        } catch let error as TokenError {
            return .oauth(error)
        } catch {
            exchange.logger.warning("passkey", metadata: ["realm": "\(exchange.realm.slug)", "error": "\(error)"])
            return .unavailable
        }
    }

    private func beginLogin(_ exchange: Exchange) async throws -> Answer {
        let form = try exchange.form()
        guard let clientID = form["client_id"] else {
            throw TokenError(.invalidRequest, "The parameter client_id is missing.")
        }
        guard let client = exchange.realm.clients[clientID], client.enabled, client.mayUse(.passkey) else {
            return .error(.badRequest, "unauthorized_client")
        }
        try exchange.realm.requireAdmission(of: client)
        let options = try await passkeys.beginLogin(
            realm: exchange.realm, client: client, rpID: try rpID(exchange.realm, client),
            source: try exchange.sourceOfAnonymous())
        return Answer(json: options.json)
    }

    private func beginEnrolment(_ exchange: Exchange) async throws -> Answer {
        let (verified, client) = try await authenticate(exchange, stepUp: true)
        let options = try await passkeys.beginEnrolment(
            realm: exchange.realm, client: client, rpID: try rpID(exchange.realm, client), verified: verified)
        return options.map { Answer(json: $0.json) } ?? .bearerChallenge(invalidToken: true)
    }

    private func enrol(_ exchange: Exchange) async throws -> Answer {
        let (verified, client) = try await authenticate(exchange, stepUp: true)
        let body = try await exchange.json()
        let displayName = try Self.displayName(body, required: false)
        guard let ceremonyID = try body.string("ceremonyId"), let attestation = body.object("attestation") else {
            return .message(.badRequest, "Passkey enrollment failed.")
        }
        do {
            let id = try await passkeys.enrol(
                ceremonyID: ceremonyID, attestation: attestation, displayName: displayName, realm: exchange.realm,
                client: client,
                verified: verified, source: exchange.source)
            var object = JSONWriter()
            object.member("Message", "Passkey enrolled successfully.")
            object.member("Id", id.description)
            return Answer(json: object.finish())
        } catch Passkeys.EnrolmentFailure.session {
            return .message(.badRequest, "Enrollment session expired. Please try again.")
        } catch Passkeys.EnrolmentFailure.refused(let reason) {
            exchange.logger.info(
                "enrolment refused", metadata: ["realm": "\(exchange.realm.slug)", "reason": "\(reason)"])
            return .message(.badRequest, "Passkey enrollment failed.")
        }
    }

    private func list(_ exchange: Exchange) async throws -> Answer {
        let (verified, _) = try await authenticate(exchange, stepUp: false)
        let listed = try await passkeys.list(realm: exchange.realm, user: verified.session.user)
        return Answer(json: Array("[".utf8) + listed.map(\.json).joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func rename(_ exchange: Exchange) async throws -> Answer {
        let (verified, _) = try await authenticate(exchange, stepUp: false)
        let name = try Self.displayName(try await exchange.json(), required: true) ?? ""
        guard let id = UUIDValue(exchange.pathParameter),
            let item = try await passkeys.rename(realm: exchange.realm, user: verified.session.user, id: id, to: name)
        else { return Answer(.notFound) }
        return Answer(json: item.json)
    }

    private func delete(_ exchange: Exchange) async throws -> Answer {
        let (verified, _) = try await authenticate(exchange, stepUp: true)
        guard let id = UUIDValue(exchange.pathParameter),
            try await passkeys.delete(realm: exchange.realm, verified: verified, id: id, source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }

    private func authenticate(
        _ exchange: Exchange, stepUp: Bool
    ) async throws(Refusal) -> (VerifiedAccessToken, Client) {
        let verified = try await bearer.authenticate(exchange)
        guard let client = exchange.realm.clients[verified.session.clientID], client.mayUse(.passkey) else {
            throw Refusal(.insufficientScope())
        }
        guard !stepUp || verified.session.now - verified.session.authTime <= Double(BearerAuthentication.stepUpAge) else {
            throw Refusal(.stepUp(maximumAge: BearerAuthentication.stepUpAge))
        }
        return (verified, client)
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

    /// 1 to 64 characters without control or invisible ones.
    private static func displayName(_ body: JSONMembers, required: Bool) throws(Refusal) -> String? {
        guard let name = try body.string("DisplayName").map({ String($0.trimmingSpaces) }) else {
            guard !required else { throw Refusal(.error(.badRequest, "DisplayName is required.")) }
            return nil
        }
        guard (1...64).contains(name.unicodeScalars.count), PersonalText.isPrintable(name) else {
            throw Refusal(.error(.badRequest, "DisplayName is invalid."))
        }
        return name
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
