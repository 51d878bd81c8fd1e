import Encoding
import Grants
import HTTPTypes
import Persistence

/// Trusted devices: their owner's calls with an access token, their own with a proof of their key. With approvals off
/// these endpoints do not exist; that is looked at first. Where numbers are proven, owners can see and remove the keys
/// of their numbers without approvals, too.
struct DeviceRoutes: Sendable {
    let devices: Devices
    let authentication: DeviceAuthentication
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route(
                "/connect/devices",
                [
                    .post: .account(bearer, for: .devices, signedInWithin: recently) { try await add($0, $1) }
                        .requiring(.approvals),
                    .get: .account(bearer) { try await list($0, $1) },
                ]
            ).requiring(.deviceKeys),
            Route("/connect/devices/self", [.get: .deviceProof(authentication) { try await look($0, $1) }])
                .requiring(.approvals),
            Route("/connect/devices/offer", [.post: .deviceProof(authentication) { try await offer($0, $1) }])
                .requiring(.approvals).errors(.native),
            Route("/connect/devices/inspect", [.post: .account(bearer) { exchange, _ in try await inspect(exchange) }])
                .requiring(.approvals),
            Route(
                "/connect/devices/adopt",
                [.post: .account(bearer, signedInWithin: recently) { try await adopt($0, $1) }]
            ).requiring(.approvals),
            Route(
                prefix: "/connect/devices/",
                [
                    .patch: .accountOrDevice(
                        bearer, authentication, account: { try await change($0, $1) },
                        device: { try await changeItself($0, $1) }
                    ).requiring(.approvals),
                    .delete: .accountOrDevice(
                        bearer, signedInWithin: recently, authentication, account: { try await remove($0, $1) },
                        device: { try await own(.remove, $0, $1) }),
                ]
            ).requiring(.deviceKeys),
        ].map { $0.cors(.clients).logged(as: "devices") }
    }

    private var recently: Int { BearerAuthentication.stepUpAge }

    // MARK: With an access token

    private func add(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        let change = try Self.change(body)
        let proof = try authentication.proofs.verify(
            exchange.presentedProof([body.text("Proof") ?? ""]), accessToken: caller.accessToken,
            realm: exchange.realm)
        let added = try await authentication.proofs.using(in: exchange.realm) {
            try await devices.add(
                change, proof: proof, realm: exchange.realm, verified: caller.verified, source: exchange.source)
        }
        switch added {
        case .keyInUse: return .error(.conflict, "key_in_use")
        case .tooMany: return .error(.conflict, "too_many_devices")
        case .signedOut: return .bearerChallenge(invalidToken: true)
        case .added(let id, let probationUntil):
            var object = JSONWriter()
            object.member("Message", "Device added.")
            object.member("Id", id.description)
            object.member("ProbationUntil", probationUntil.map(Timestamp.text))
            return Answer(json: object.finish())
        }
    }

    private func list(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let listed = try await devices.list(realm: exchange.realm, user: caller.user)
        return Answer(json: Array("[".utf8) + listed.map(\.json).joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func inspect(_ exchange: Exchange) async throws -> Answer {
        let body = try await exchange.json()
        guard let offer = devices.inspect(body.text("Offer") ?? "", realm: exchange.realm) else {
            return Self.invalidOffer
        }
        var object = JSONWriter()
        object.member("DisplayName", offer.displayName ?? DeviceKeyStore.Listed.unnamed)
        object.member("ClientName", offer.clientName)
        object.member("Source", offer.source)
        object.member("CreatedAt", Timestamp.text(Double(offer.createdAt)))
        object.member("ExpiresIn", offer.expiresIn)
        return Answer(json: object.finish())
    }

    private func adopt(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let body = try await exchange.json()
        let adopted = try await devices.adopt(
            body.text("Offer") ?? "", approval: body.text("Approval") ?? "", realm: exchange.realm,
            verified: caller.verified, source: exchange.source)
        switch adopted {
        case .adopted(let device): return Answer(json: device.json)
        case .notTrusted: return .error(.forbidden, "device_not_trusted")
        case .invalid: return Self.invalidOffer
        case .keyInUse: return .error(.conflict, "key_in_use")
        case .tooMany: return .error(.conflict, "too_many_devices")
        case .signedOut: return .bearerChallenge(invalidToken: true)
        }
    }

    // MARK: With a proof alone

    private func look(_ exchange: Exchange, _ caller: DeviceCaller) async throws -> Answer {
        switch try await call(.look, exchange, caller, nil) {
        case .done(let device?): Answer(json: device.json)
        case .done(nil), .unknown, .foreign: Answer(.notFound)
        }
    }

    private func offer(_ exchange: Exchange, _ caller: DeviceCaller) async throws -> Answer {
        let body = try await exchange.json()
        let clientID = try body.string("ClientId") ?? ""
        exchange.nameClient(clientID)
        let name = try Self.displayName(body)
        let shown = try await caller.using(in: exchange.realm) {
            try await devices.offer(
                name, clientID: clientID, proof: caller.proof, realm: exchange.realm, source: exchange.source)
        }
        var object = JSONWriter()
        object.member("Offer", shown.offer)
        object.member("CheckCode", shown.checkCode)
        object.member("ExpiresIn", shown.expiresIn)
        object.member("QrText", "postern-device:\(exchange.host):\(shown.offer)")
        return Answer(json: object.finish())
    }

    // MARK: With either

    private func change(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let change = try Self.change(try await exchange.json())
        guard let id = UUIDValue(exchange.pathParameter),
            let device = try await devices.change(id, change, realm: exchange.realm, verified: caller.verified)
        else { return Answer(.notFound) }
        return Answer(json: device.json)
    }

    private func remove(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let id = UUIDValue(exchange.pathParameter),
            try await devices.remove(id, realm: exchange.realm, verified: caller.verified, source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }

    private func changeItself(_ exchange: Exchange, _ caller: DeviceCaller) async throws -> Answer {
        try await own(.change(try Self.change(try await exchange.json())), exchange, caller)
    }

    /// A call about the device of the proof, which the path must name.
    private func own(
        _ wanted: Devices.OwnCall, _ exchange: Exchange, _ caller: DeviceCaller
    ) async throws -> Answer {
        try Requirement.approvals.require(in: exchange.realm)
        // A device of no such name is no device of this proof.
        let id = UUIDValue(exchange.pathParameter) ?? UUIDValue.random()
        return switch try await call(wanted, exchange, caller, id) {
        case .done(let device?): Answer(json: device.json)
        case .done(nil): Answer(.noContent)
        case .foreign: Answer(.notFound)
        case .unknown: throw DeviceAuthentication.unknown
        }
    }

    private func call(
        _ call: Devices.OwnCall, _ exchange: Exchange, _ caller: DeviceCaller, _ id: UUIDValue?
    ) async throws -> DeviceKeyStore.OwnCall {
        try await caller.using(in: exchange.realm) {
            try await devices.call(call, of: id, proof: caller.proof, realm: exchange.realm, source: exchange.source)
        }
    }

    // MARK: Parts

    private static var invalidOffer: Answer { .error(.badRequest, "invalid_offer") }

    private static func change(_ body: JSONMembers) throws(Refusal) -> Devices.Change {
        let pushHandle = try body.string("PushHandle")
        guard pushHandle.map({ (1...PushHandle.maximumBytes).contains($0.utf8.count) }) ?? true else {
            throw Refusal(.error(.badRequest, "PushHandle is invalid."))
        }
        return Devices.Change(
            displayName: try displayName(body), pushHandle: pushHandle, clearsPushHandle: body.isNull("PushHandle"))
    }

    /// 1 to 64 code points, without the characters that begin and end elements of HTML: other devices show the name.
    private static func displayName(_ body: JSONMembers) throws(Refusal) -> String? {
        guard let typed = try body.string("DisplayName") else { return nil }
        guard let name = NameText.read(typed, longest: 64), !name.utf8.contains(where: { "<>".utf8.contains($0) })
        else { throw Refusal(.error(.badRequest, "DisplayName is invalid.")) }
        return name
    }
}

extension DeviceKeyStore.Listed {
    /// In the place of a name.
    fileprivate static let unnamed = "Device"

    /// The item of `GET /connect/devices`.
    fileprivate var json: [UInt8] {
        var object = JSONWriter()
        object.member("Id", id.description)
        object.member("DisplayName", displayName ?? Self.unnamed)
        object.member("ClientId", clientID)
        object.member("CreatedAt", Timestamp.text(createdAt))
        object.member("LastUsedAt", lastUsedAt.map(Timestamp.text))
        object.member("ProbationUntil", probationUntil.map(Timestamp.text))
        object.member("AddedBy", !isTrusted ? "phone" : isAdopted ? "device" : "sign-in")
        object.member("Phone", phone.map(MaskedPhone.text))
        return object.finish()
    }
}
