import Encoding
import FoundationEssentials
public import Persistence

/// Questions to operators about a number: risk, a changed SIM, whose phone it is. They are asked outside of every
/// transaction, once, and have two seconds from the beginning of the call.
public struct PossessionSignals: Sendable {
    /// Posts JSON for a realm; follows no redirect, reads 64 KiB at most. - Returns: the body of a whole answer with
    /// status 200.
    public typealias Post =
        @Sendable (
            _ realm: UUIDValue, _ url: String, _ headers: [(name: String, value: String)], _ body: [UInt8]
        ) async -> [UInt8]?

    private let hooks: HookTokens
    private let keyring: Keyring
    private let post: Post

    public init(hooks: HookTokens, keyring: Keyring, post: @escaping Post) {
        self.hooks = hooks
        self.keyring = keyring
        self.post = post
    }

    /// Whether an operator is asked before a message to this number.
    func areAsked(about phone: String, _ facts: PossessionFacts, realm: Realm) -> Bool {
        asksForRisk(of: phone, facts, realm) || realm.possession.provider("sim-swap") != nil
    }

    private func asksForRisk(of phone: String, _ facts: PossessionFacts, _ realm: Realm) -> Bool {
        facts.checksReputation && (facts.risk == nil || phone != facts.phone)
            && realm.possession.provider("risk") != nil
    }

    /// What is known of a number's risk.
    /// - Returns: `nil`: the realm has no such provider, or it has answered.
    func risk(of phone: String?, _ facts: PossessionFacts, realm: Realm) async -> PossessionRisk? {
        guard let phone, asksForRisk(of: phone, facts, realm), let provider = realm.possession.provider("risk") else {
            return nil
        }
        var body = JSONWriter()
        body.member("phoneNumber", phone)
        body.member("ipAddress", facts.ip)
        body.member("emailAddress", facts.email.flatMap { address(of: facts, sealed: $0, realm) })
        body.member("clientRequestId", facts.requestID)
        struct Reply: Decodable { let result: String }
        let said: Reply? = await ask(provider.url, body.finish(), realm)
        switch said.flatMap({ PossessionRisk(rawValue: $0.result) }) {
        case .allow: return .allow
        case .deny: return .deny
        case .unknown, .unavailable, nil: return provider.required ? .unavailable : .unknown
        }
    }

    /// Whether the number got another SIM in the last three days.
    /// - Returns: `nil` to go on.
    func swap(of phone: String, realm: Realm) async -> PossessionSIM? {
        guard let provider = realm.possession.provider("sim-swap") else { return nil }
        var body = JSONWriter()
        body.member("phoneNumber", phone)
        body.member("maxAge", 72)
        struct Reply: Decodable { let swapped: Bool }
        let said: Reply? = await ask(provider.url + "/check", body.finish(), realm)
        guard let said else { return provider.required ? .unavailable : nil }
        return said.swapped ? .swapped : nil
    }

    /// Whether the operator knows the number to be this phone's. - Parameter token: the operator's own.
    func verifies(_ phone: String, _ token: String, realm: Realm) async -> Bool {
        guard let provider = realm.possession.provider("number-verification") else { return false }
        var body = JSONWriter()
        body.member("phoneNumber", phone)
        struct Reply: Decodable { let devicePhoneNumberVerified: Bool }
        let said: Reply? = await ask(
            provider.url + "/verify", body.finish(), realm, [("Postern-Operator-Token", token)])
        return said?.devicePhoneNumberVerified ?? false
    }

    private func ask<Reply: Decodable>(
        _ url: String, _ body: [UInt8], _ realm: Realm, _ more: [(name: String, value: String)] = []
    ) async -> Reply? {
        guard let token = try? await hooks.token(realm: realm.id, url: url, id: .random(), body: body) else {
            return nil
        }
        let headers = [
            ("Content-Type", "application/json"), ("Accept", "application/json"), ("Authorization", "Bearer \(token)"),
        ]
        guard let answer = await post(realm.id, url, headers + more, body) else { return nil }
        return try? JSONDecoder().decode(Reply.self, from: Data(answer))
    }

    private func address(of facts: PossessionFacts, sealed: String, _ realm: Realm) -> String? {
        guard let bytes = Base64.urlDecode(sealed),
            let opened = try? keyring.open(
                bytes, for: .riskAddress, realm: realm.id, aad: realm.id.bytes + facts.authID.bytes)
        else { return nil }
        return String(validating: opened, as: UTF8.self)
    }
}
