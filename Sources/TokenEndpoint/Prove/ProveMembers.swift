import Encoding
import Grants
import HTTPTypes
import Persistence

/// The members of a call on Prove's wire, read within their bounds. Names are read in any case.
struct ProveMembers {
    private let body: JSONMembers
    private let realm: Realm
    private let client: Client

    /// - Throws: 8001; 413 and 415 as everywhere.
    init(_ exchange: Exchange, client: Client) async throws {
        do {
            body = try await exchange.json()
        } catch {
            guard error.answer.status == .badRequest else {
                throw ProveRefusal(adding: 8001, "The body is not acceptable.", to: error.answer)
            }
            throw ProveRefusal.malformed("The body must be one JSON object without repeated names.")
        }
        realm = exchange.realm
        self.client = client
    }

    /// A text; `nil` when absent. - Throws: 8001 for another type.
    func text(_ name: String) throws(ProveRefusal) -> String? {
        guard body.has(name) else { return nil }
        guard let text = body.text(name) else { throw .invalid(name) }
        return text
    }

    func required(_ name: String) throws(ProveRefusal) -> String {
        guard let text = try text(name) else { throw .absent(name) }
        return text
    }

    private func flag(_ name: String) throws(ProveRefusal) -> Bool? {
        do throws(Refusal) { return try body.bool(name) == true ? true : nil } catch { throw .invalid(name) }
    }

    /// A text that is stored and given back.
    private func label(_ name: String) throws(ProveRefusal) -> String? {
        guard let text = try text(name), !text.isEmpty else { return nil }
        let isPrintable = text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        guard text.count <= 128, isPrintable else { throw .invalid(name) }
        return text
    }

    /// What the backend calls this request; `nil` when absent or empty.
    func requestID() throws(ProveRefusal) -> String? { try label("clientRequestId") }

    private func uuid(_ name: String) throws(ProveRefusal) -> UUIDValue? {
        guard let text = try text(name), !text.isEmpty else { return nil }
        guard let value = UUIDValue(text) else { throw .invalid(name) }
        return value
    }

    /// A key. - Throws: 8001 when it is missing or no UUID.
    func device() throws(ProveRefusal) -> UUIDValue {
        _ = try required("deviceId")
        guard let id = try uuid("deviceId") else { throw .invalid("deviceId") }
        return id
    }

    /// E.164; `nil` when absent or empty.
    func phone() throws(ProveRefusal) -> String? {
        guard let text = try text("phoneNumber"), !text.isEmpty else { return nil }
        guard let number = realm.possessionNumber(text) else { throw .invalid("phoneNumber") }
        return number.text
    }

    /// A transaction. Any other text than a UUID names none.
    func correlation() throws(ProveRefusal) -> UUIDValue {
        guard let id = UUIDValue(try required("correlationId")) else { throw .correlation }
        return id
    }

    /// What `unify` and `start` begin. - Parameter kind: name of the member that says which kind.
    func start(
        _ family: PossessionFamily, kind name: String, _ kinds: Set<PossessionKind>
    ) throws(ProveRefusal) -> Possessions.Request {
        guard let kind = PossessionKind(rawValue: try required(name)), kinds.contains(kind) else {
            throw .invalid(name)
        }
        for name in ["dob", "ssn"] where body.has(name) { throw .invalid(name) }
        var detail = PossessionDetail(family: family)
        detail.target = try target(kind)
        detail.retries = try flag("allowOTPRetry")
        if family == .unify {
            detail.rebind = try flag("rebind")
            detail.checkReputation = try flag("checkReputation")
            _ = try flag("mobileAuthEnabled")
            detail.deviceID = try uuid("deviceId")
            detail.requestID = try requestID()
            detail.humanID = try label("clientHumanId")
            detail.customerID = try label("clientCustomerId")
        }
        if let text = try text("smsMessage"), !text.isEmpty {
            guard PossessionLink.isMessage(text, mayBeLink: detail.target != nil, realm: realm) else {
                throw .invalid("smsMessage")
            }
            detail.smsMessage = text
        }
        if let text = try text("ipAddress"), !text.isEmpty {
            guard let address = IPAddress(text) else { throw .invalid("ipAddress") }
            detail.ip = address.description
        }
        var request = Possessions.Request(kind: kind, detail: detail)
        request.phone = try phone()
        if family == .unify { request.proveID = try uuid("proveId") }
        if let text = try text("emailAddress"), !text.isEmpty {
            guard let address = EmailAddress(text) else { throw .invalid("emailAddress") }
            request.email = address.text
        }
        return request
    }

    /// `finalTargetUrl`: a URL at a registered web origin of the client.
    private func target(_ kind: PossessionKind) throws(ProveRefusal) -> String? {
        guard let text = try text("finalTargetUrl"), !text.isEmpty else {
            if kind == .desktop { throw .absent("finalTargetUrl") }
            return nil
        }
        let isPlain = text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-._+=/:?".utf8.contains(byte)
        }
        guard text.utf8.count <= 128, isPlain, let origin = WebOrigin.of(text), SecureAddress.holds(origin)
        else { throw .invalid("finalTargetUrl") }
        // What the page adds must be there once: some readers take the first of two.
        if let query = text.split(separator: "?", maxSplits: 1).dropFirst().first,
            ["asc", "authid", "pc"].contains(query.prefix { $0 != "=" }.lowercased())
        {
            throw .invalid("finalTargetUrl")
        }
        guard Client.isRegistered(origin, among: client.webOrigins) else {
            throw .malformed(
                "field 'finalTargetUrl' is invalid: \(origin) is not a web origin of the client; an administrator "
                    + "registers it with admin.put_web_origin")
        }
        return text
    }
}
