import Foundation

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A server that knows sessions and their generations, and does for the next requests what a test says.
actor FakeServer: Transport {
    static let origin = "https://id.example"

    /// What becomes of a request in place of the usual.
    enum Fate: Sendable {
        /// It does not arrive.
        case cut
        /// It arrives and has its effect; the answer is lost.
        case dropped
        case answer(Int, JSONValue? = nil, [String: String] = [:], body: Data? = nil)
        /// It arrives and has its effect; the answer waits at a gate. `reached` opens when it does.
        case held(reached: Gate, until: Gate)
        /// The same with an answer of the test's own.
        case heldAnswer(JSONValue, reached: Gate, until: Gate)
        /// It arrives twice, as an HTTP stack may send it; the client sees the second answer.
        case twice
    }

    struct Seen: Sendable {
        let request: URLRequest
        var path: String { request.url?.path ?? "" }
        var form: [String: String] {
            let text = request.httpBody.map { String(decoding: $0, as: UTF8.self) } ?? ""
            let fields = text.split(separator: "&").map { $0.split(separator: "=", omittingEmptySubsequences: false) }
            return fields.reduce(into: [:]) { $0[String($1[0])] = $1.last?.removingPercentEncoding }
        }
        var json: JSONValue? { request.httpBody.flatMap { JSONValue($0) } }
        /// The claims of the proof.
        var proof: JSONValue? {
            let parts = request.value(forHTTPHeaderField: "DPoP")?.split(separator: ".") ?? []
            return parts.count == 3 ? Base64URL.decode(String(parts[1])).flatMap { JSONValue($0) } : nil
        }
    }

    struct Family {
        let user: String
        var generation = 1
        var isAlive = true
        var isBearer = false
    }

    let time: VirtualTime
    private(set) var seen: [Seen] = []
    private(set) var revoked: [String] = []
    var families: [String: Family] = [:]
    private var fates: [(path: String?, fate: Fate)] = []
    private var usedProofs: Set<String> = []
    private var issued = 0
    private var life: TimeInterval = 900
    /// How far the server's clock is ahead of the device's.
    private var ahead: TimeInterval = 0

    init(_ time: VirtualTime) { self.time = time }

    func next(_ fates: Fate..., at path: String? = nil) { self.fates += fates.map { (path, $0) } }
    /// Keeps the answer of the next request until a test opens `until`; `reached` opens when the request is there.
    func hold(at path: String? = nil) -> (reached: Gate, until: Gate) {
        let (reached, until) = (Gate(), Gate())
        next(.held(reached: reached, until: until), at: path)
        return (reached, until)
    }
    /// The usual happens again.
    func recovers() { fates = [] }
    func setLife(_ seconds: TimeInterval) { life = seconds }
    func setAhead(_ seconds: TimeInterval) { ahead = seconds }
    func end(_ family: String) { families[family]?.isAlive = false }
    func count(_ path: String) -> Int { seen.filter { $0.path == path }.count }
    func generation(_ family: String) -> Int { families[family]?.generation ?? 0 }
    func add(_ family: String, _ made: Family) { families[family] = made }

    nonisolated func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        try await receive(request)
    }

    private func receive(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let seen = Seen(request: request)
        let index = fates.firstIndex { $0.path == nil || $0.path == seen.path }
        let fate = index.map { fates.remove(at: $0).fate }
        self.seen.append(seen)
        switch fate {
        case .cut?: throw URLError(.notConnectedToInternet)
        case .dropped?:
            _ = answer(seen)
            throw URLError(.networkConnectionLost)
        case .answer(let status, let json, let fields, let body)?:
            return try reply(request, status, json, fields, body)
        case .held(let reached, let until)?:
            let answer = answer(seen)
            await reached.open()
            await until.pass()
            return try reply(request, answer.0, answer.1)
        case .heldAnswer(let json, let reached, let until)?:
            await reached.open()
            await until.pass()
            return try reply(request, 200, json)
        case .twice?:
            _ = answer(seen)
            let again = answer(seen)
            return try reply(request, again.0, again.1)
        case nil:
            let answer = answer(seen)
            return try reply(request, answer.0, answer.1)
        }
    }

    private func reply(
        _ request: URLRequest, _ status: Int, _ json: JSONValue?, _ fields: [String: String] = [:], _ body: Data? = nil
    ) throws -> (Data, HTTPURLResponse) {
        let url = request.url ?? URL(fileURLWithPath: "/")
        let fields = ["Date": httpDate(time.now + ahead)].merging(fields) { $1 }
        guard let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields)
        else {
            throw URLError(.badServerResponse)
        }
        return (body ?? json?.data ?? Data(), response)
    }

    private func answer(_ seen: Seen) -> (Int, JSONValue?) {
        if let jti = seen.proof?["jti"]?.string, !usedProofs.insert(jti).inserted, !isRefreshOfPredecessor(seen) {
            return (seen.path == "/connect/token" ? 400 : 401, ["error": "invalid_dpop_proof"])
        }
        switch seen.path {
        case "/connect/token": return token(seen)
        case "/connect/revoke":
            revoked.append(seen.form["token"] ?? "")
            return (200, nil)
        case "/connect/sessions": return (204, nil)
        case "/.well-known/openid-configuration": return (200, ["issuer": .string(Self.origin)])
        default: return (200, [:])
        }
    }

    /// A used proof gets the successor again, as a new one does.
    private func isRefreshOfPredecessor(_ seen: Seen) -> Bool { seen.form["grant_type"] == "refresh_token" }

    private func token(_ seen: Seen) -> (Int, JSONValue?) {
        let parts = (seen.form["refresh_token"] ?? "").split(separator: ".")
        guard parts.count == 2, let generation = Int(parts[1]), var family = families[String(parts[0])] else {
            return (400, ["error": "invalid_grant"])
        }
        let name = String(parts[0])
        if generation == family.generation {
            family.generation += 1
        } else if generation != family.generation - 1 {
            family.isAlive = false
        }
        families[name] = family
        guard family.isAlive else { return (400, ["error": "invalid_grant"]) }
        return (200, tokens(name, scope: seen.form["scope"] ?? "openid offline_access orders.read"))
    }

    /// What the token endpoint answers for the present generation of a family.
    func tokens(_ name: String, scope: String, refresh: Bool = true, nonce: String? = nil) -> JSONValue {
        issued += 1
        let family = families[name] ?? Family(user: "unknown")
        var members: [String: JSONValue] = [
            "access_token": .string("access-\(name)-\(issued)"), "expires_in": .number(life), "scope": .string(scope),
            "token_type": family.isBearer ? "Bearer" : "DPoP",
        ]
        if refresh { members["refresh_token"] = .string("\(name).\(family.generation)") }
        if scope.contains("openid") { members["id_token"] = .string(idToken(name, nonce: nonce)) }
        return .object(members)
    }

    func idToken(_ name: String, nonce: String? = nil) -> String {
        let now = (time.now + ahead).timeIntervalSince1970.rounded(.down)
        var claims: [String: JSONValue] = [
            "iss": .string(Self.origin), "aud": "app", "sub": .string(families[name]?.user ?? "unknown"),
            "sid": .string("sid-\(name)"), "iat": .number(now), "exp": .number(now + 900),
            "auth_time": .number(1_799_999_990), "amr": ["otp"], "acr": "urn:postern:acr:1",
            "email": "mike@mail.example",
        ]
        claims["nonce"] = nonce.map(JSONValue.string)
        return "e30." + Base64URL.encode(JSONValue.object(claims).data) + ".c2ln"
    }

    private func httpDate(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }
}
