import Encoding
import Grants
import HTTPTypes
import Persistence

/// `/connect/approvals`: the inbox of a trusted device, which proves its key, and its answers, which it signs.
struct ApprovalRoutes: Sendable {
    let approvals: Approvals
    let authentication: DeviceAuthentication
    let waiting: LongPolls

    var routes: [Route] {
        [
            Route("/connect/approvals", [.get: .deviceProof(authentication) { try await inbox($0, $1) }]),
            Route(prefix: "/connect/approvals/", [.post: .deviceStatement { try await answer($0) }]),
        ].map { $0.requiring(.approvals).cors(.clients).logged(as: "approvals") }
    }

    private static let longestWait = 25

    private func inbox(_ exchange: Exchange, _ caller: DeviceCaller) async throws -> Answer {
        let seconds = try Self.wait(exchange)
        return try await caller.using(in: exchange.realm) {
            let poll = approvals.poll(by: caller.proof.use, realm: exchange.realm)
            let held = try await waiting.hold(exchange, for: seconds) {
                @Sendable () async throws -> Poll<ApprovalStore.Inbox> in
                guard let inbox = try await poll.inbox() else { throw DeviceAuthentication.unknown }
                guard inbox.approvals.isEmpty, inbox.probationUntil == nil else { return .found(inbox) }
                return .nothing(inbox, WaitTopic(.user, inbox.user, realm: exchange.realm.id))
            }
            return held.answer { Answer(json: $0.json) }
        }
    }

    private static func wait(_ exchange: Exchange) throws(Refusal) -> Int {
        guard let query = try? FormParameters(parsing: exchange.request.query.utf8) else {
            throw Refusal(.error(.badRequest, "invalid_request"))
        }
        guard let text = query["wait"] else { return 0 }
        guard text.utf8.count <= 2, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text),
            seconds <= longestWait
        else { throw Refusal(.error(.badRequest, "invalid_request")) }
        return seconds
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        let response = try await exchange.json().text("Response") ?? ""
        guard let id = UUIDValue(exchange.pathParameter) else { return Answer(.notFound) }
        let answered = try await approvals.answer(
            response, to: id, realm: exchange.realm, source: exchange.source)
        switch answered {
        case .decided(let decision, let time):
            var object = JSONWriter(reserving: 160)
            object.member("Id", id.description)
            object.member("Decision", decision)
            object.member("DecidedAt", Timestamp.text(time))
            return Answer(json: object.finish())
        case .numberMismatch: return .error(.badRequest, "number_mismatch")
        case .invalid: return .error(.badRequest, "invalid_response")
        case .notTrusted: return .error(.forbidden, "device_not_trusted")
        case .notFound: return Answer(.notFound)
        case .alreadyDecided(let decision):
            var object = JSONWriter(reserving: 96)
            object.member("error", "already_decided")
            object.member("Decision", decision)
            return Answer(.conflict, json: object.finish())
        }
    }
}

extension ApprovalStore.Inbox {
    fileprivate var json: [UInt8] {
        var object = JSONWriter(reserving: 1024)
        let items = approvals.map(\.json).joined(separator: Array(",".utf8))
        object.member("Approvals", json: Array("[".utf8) + items + Array("]".utf8))
        object.member("QuietUntil", quietUntil.map(Timestamp.text))
        object.member("ProbationUntil", probationUntil.map(Timestamp.text))
        return object.finish()
    }
}

extension ApprovalStore.Inbox.Item {
    fileprivate var json: [UInt8] {
        var object = JSONWriter()
        object.member("Id", id)
        object.member("Event", event)
        object.member("ClientId", client_id)
        object.member("ClientName", client_name)
        object.member("BindingMessage", binding_message)
        object.member("Source", source)
        object.member("CreatedAt", Timestamp.text(created_at))
        object.member("ExpiresAt", Timestamp.text(expires_at))
        object.member("MatchRequired", match_required)
        object.member("Challenge", Base64.urlEncode(Hex.decode(challenge) ?? []))
        return object.finish()
    }
}
