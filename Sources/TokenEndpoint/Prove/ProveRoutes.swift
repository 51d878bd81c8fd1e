import Encoding
import Grants
import HTTPTypes
import Persistence

/// Prove's wire for backends (docs/wire.md): `/token`, and `/v3/*` by the access token of a service account. Answers
/// 404 while the realm has possession off.
struct ProveRoutes: Sendable {
    let possessions: Possessions
    let service: TokenService
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/token", [.post: .grant { try await token($0) }]),
            Route(
                "/v3/unify",
                [
                    .post: .service(bearer, ProveRefusal.self) {
                        try await start($0, $1, .unify, kind: "possessionType", [.mobile, .desktop, .none])
                    }
                ]),
            Route(
                "/v3/start",
                [
                    .post: .service(bearer, ProveRefusal.self) {
                        try await start($0, $1, .start, kind: "flowType", [.mobile, .desktop])
                    }
                ]),
            Route("/v3/unify-status", [.post: .service(bearer, ProveRefusal.self) { try await status($0, $1) }]),
            Route("/v3/unify-bind", [.post: .service(bearer, ProveRefusal.self) { try await bind($0, $1) }]),
            Route("/v3/validate", [.post: .service(bearer, ProveRefusal.self) { try await validate($0, $1) }]),
            Route("/v3/device/revoke", [.post: .service(bearer, ProveRefusal.self) { try await revoke($0, $1) }]),
        ].map { $0.requiring(.proveWire).logged(as: "possession").unavailable(ProveRefusal.unavailable.answer) }
    }

    private func token(_ exchange: Exchange) async throws -> Answer {
        do {
            let credentials = try exchange.presentedCredentials()
            let form = try exchange.form()
            guard [nil, GrantType.clientCredentials.rawValue].contains(form["grant_type"]) else {
                throw TokenError(.unsupportedGrantType, "The grant type is not supported.")
            }
            let response = try await service.token(
                form, credentials: credentials, realm: exchange.realm, source: exchange.source,
                userAgent: exchange.userAgent)
            return Answer(json: response.json)
        } catch let error as TokenError {
            throw ProveRefusal(error, basicUsed: exchange.usedAuthorization)
        } catch let error as Refusal {
            throw ProveRefusal(adding: 8001, "The request is malformed.", to: error.answer)
        }
    }

    private func start(
        _ exchange: Exchange, _ caller: ServiceCaller, _ family: PossessionFamily, kind: String,
        _ kinds: Set<PossessionKind>
    ) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            let request = try members.start(family, kind: kind, kinds)
            let started = try await possessions.start(request, client: client, realm: exchange.realm)
            var object = JSONWriter(reserving: 768)
            object.member("authToken", started.authToken)
            object.member("correlationId", started.correlationID.description)
            switch family {
            case .unify: object.member("success", "pending")
            case .start: object.member("next", json: Self.again)
            }
            return Answer(json: object.finish())
        }
    }

    private static let again = Array(#"{"v3-validate":"/v3/validate"}"#.utf8)
    private static let done = Array(#"{"done":"done"}"#.utf8)

    private func status(_ exchange: Exchange, _ caller: ServiceCaller) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            let requestID = try members.requestID()
            let id = try members.correlation()
            return Self.unified(try await facts(id, of: .unify, client, exchange), requestID)
        }
    }

    private func bind(_ exchange: Exchange, _ caller: ServiceCaller) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            _ = try members.required("phoneNumber")
            guard let phone = try members.phone() else { throw ProveRefusal.invalid("phoneNumber") }
            let requestID = try members.requestID()
            let id = try members.correlation()
            _ = try await facts(id, of: .unify, client, exchange)
            guard client.permissions.contains("cap:assert-possession") else { throw ProveRefusal.forbidden }
            switch try await possessions.bind(id, to: phone, client: client, realm: exchange.realm) {
            case .bound(let facts): return Self.unified(facts, requestID)
            case .unknown: throw ProveRefusal.correlation
            case .step: throw ProveRefusal.step
            }
        }
    }

    private func validate(_ exchange: Exchange, _ caller: ServiceCaller) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            let facts = try await facts(try members.correlation(), of: .start, client, exchange)
            var object = JSONWriter(reserving: 256)
            object.member("success", facts.state.isPassed)
            object.member("challengeMissing", false)
            object.member("next", json: facts.state.isPassed ? Self.done : Self.again)
            if facts.state.isPassed { object.member("phoneNumber", facts.phone) }
            if let evaluation = facts.evaluation { object.member("evaluation", json: evaluation.json) }
            if facts.isTest { object.member("testNumber", true) }
            return Answer(json: object.finish())
        }
    }

    private func revoke(_ exchange: Exchange, _ caller: ServiceCaller) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            _ = try members.requestID()
            let device = try members.device()
            guard try await possessions.revoke(device, client: client, realm: exchange.realm) else {
                throw ProveRefusal.device
            }
            var object = JSONWriter(reserving: 32)
            object.member("success", true)
            return Answer(json: object.finish())
        }
    }

    /// A transaction of the right family of calls.
    private func facts(
        _ id: UUIDValue, of family: PossessionFamily, _ client: Client, _ exchange: Exchange
    ) async throws -> PossessionFacts {
        guard let facts = try await possessions.status(id, client: client, realm: exchange.realm) else {
            throw ProveRefusal.correlation
        }
        guard facts.family == family else { throw ProveRefusal.step }
        return facts
    }

    /// What the `unify` family says of a transaction. - Parameter requestID: of this call, or else that of its start.
    private static func unified(_ facts: PossessionFacts, _ requestID: String?) -> Answer {
        var object = JSONWriter(reserving: 384)
        object.member("success", facts.success)
        if facts.state.isPassed { object.member("phoneNumber", facts.phone) }
        object.member("clientHumanId", facts.humanID)
        object.member("clientRequestId", requestID ?? facts.requestID)
        if facts.state.isPassed, facts.kind != .desktop { object.member("deviceId", facts.deviceID?.description) }
        if let evaluation = facts.evaluation { object.member("evaluation", json: evaluation.json) }
        if facts.state.isPassed { object.member("proveId", facts.proveID?.description) }
        if facts.isTest { object.member("testNumber", true) }
        return Answer(json: object.finish())
    }

    /// After the caller: the members, then what the call does; errors in this wire's form.
    private func answering(
        _ exchange: Exchange, _ caller: ServiceCaller, _ body: (Client, ProveMembers) async throws -> Answer
    ) async throws -> Answer {
        do {
            return try await body(caller.client, try await ProveMembers(exchange, client: caller.client))
        } catch let error as ProveRefusal {
            throw error
        } catch {
            throw ProveRefusal(TokenError(error), basicUsed: false)
        }
    }
}

extension PossessionFacts {
    /// `success` of the `unify` family.
    fileprivate var success: String {
        switch state {
        case .passed, .redeemed: "true"
        case .required: "possession_required"
        case .failed: "false"
        case .open, .sent, .linked: "pending"
        }
    }
}

extension PossessionEvaluation {
    /// `evaluation`: each member is an object.
    fileprivate var json: [UInt8] {
        var object = JSONWriter(reserving: 192)
        if let authentication { object.member("authentication", json: authentication.json) }
        if let risk { object.member("risk", json: risk.json) }
        return object.finish()
    }
}

extension PossessionEvaluation.Verdict {
    fileprivate var json: [UInt8] {
        var object = JSONWriter(reserving: 160)
        object.member("result", isPassed ? "pass" : "fail")
        if !reasons.isEmpty {
            var texts = JSONWriter(reserving: 128)
            for reason in reasons { texts.member(named: reason.rawValue, reason.text) }
            object.member("failureReasons", json: texts.finish())
        }
        return object.finish()
    }
}
