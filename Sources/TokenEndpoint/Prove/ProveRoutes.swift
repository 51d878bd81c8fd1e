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
                        try await start($0, $1, "unify", kind: "possessionType", ["mobile", "desktop", "none"])
                    }
                ]),
            Route(
                "/v3/start",
                [
                    .post: .service(bearer, ProveRefusal.self) {
                        try await start($0, $1, "start", kind: "flowType", ["mobile", "desktop"])
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
        _ exchange: Exchange, _ caller: ServiceCaller, _ family: String, kind: String, _ kinds: Set<String>
    ) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            let request = try members.start(family, kind: kind, kinds)
            let started = try await possessions.start(request, client: client, realm: exchange.realm)
            var object = JSONWriter(reserving: 768)
            object.member("authToken", started.authToken)
            object.member("correlationId", started.correlationID.description)
            if family == "unify" {
                object.member("success", "pending")
            } else {
                object.member("next", json: Self.again)
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
            return Self.unified(try await facts(id, of: "unify", client, exchange), requestID)
        }
    }

    private func bind(_ exchange: Exchange, _ caller: ServiceCaller) async throws -> Answer {
        try await answering(exchange, caller) { client, members in
            _ = try members.required("phoneNumber")
            guard let phone = try members.phone() else { throw ProveRefusal.invalid("phoneNumber") }
            let requestID = try members.requestID()
            let id = try members.correlation()
            _ = try await facts(id, of: "unify", client, exchange)
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
            let facts = try await facts(try members.correlation(), of: "start", client, exchange)
            var object = JSONWriter(reserving: 256)
            object.member("success", facts.isPassed)
            object.member("challengeMissing", false)
            object.member("next", json: facts.isPassed ? Self.done : Self.again)
            if facts.isPassed { object.member("phoneNumber", facts.phone) }
            if let evaluation = facts.evaluation { object.member("evaluation", json: evaluation) }
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
        _ id: UUIDValue, of family: String, _ client: Client, _ exchange: Exchange
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
        if facts.isPassed { object.member("phoneNumber", facts.phone) }
        object.member("clientHumanId", facts.humanId)
        object.member("clientRequestId", requestID ?? facts.requestId)
        if facts.isPassed, facts.kind != "desktop" { object.member("deviceId", facts.deviceId?.description) }
        if let evaluation = facts.evaluation { object.member("evaluation", json: evaluation) }
        if facts.isPassed { object.member("proveId", facts.proveId?.description) }
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
    var success: String {
        switch state {
        case "passed", "redeemed": "true"
        case "required": "possession_required"
        case "failed": "false"
        default: "pending"
        }
    }

    /// `evaluation`: what decided; `nil` while nothing has. Every member is an object.
    var evaluation: [UInt8]? {
        var parts: [String] = []
        let codes = (reason ?? "").split(separator: " ").map(String.init)
        func part(_ name: String, _ result: String, _ codes: [String]) -> String {
            let reasons = codes.compactMap { code in Self.texts[code].map { #""\#(code)":"\#($0)""# } }
            let failures = reasons.isEmpty ? "" : #","failureReasons":{"# + reasons.joined(separator: ",") + "}"
            return #""\#(name)":{"result":"\#(result)"\#(failures)}"#
        }
        if isPassed {
            parts.append(part("authentication", "pass", codes))
        } else if state == "failed" || state == "required" && !codes.isEmpty {
            parts.append(part("authentication", "fail", codes))
        }
        if risk == "allow" { parts.append(part("risk", "pass", [])) }
        if risk == "deny" { parts.append(part("risk", "fail", ["9200"])) }
        return parts.isEmpty ? nil : Array("{\(parts.joined(separator: ","))}".utf8)
    }

    private static let texts = [
        "9100": "Phone possession incomplete.", "9101": "Phone number doesn't match Prove Key. Rebind required.",
        "9200": "The risk provider refused.", "9201": "The risk provider did not answer.",
        "9202": "The SIM was changed lately.", "9203": "Passed without number match.",
        "9210": "No tries are left for this code.", "9211": "No more messages can be sent.",
        "9212": "The number did not match.",
    ]
}
