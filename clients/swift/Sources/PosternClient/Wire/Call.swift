import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request to Postern.
struct Call: Sendable {
    enum Body: Sendable {
        case none
        case form([(String, String)])
        case json(JSONValue)
        /// JSON with a proof by the key of the store inside, made anew for each attempt.
        case proving(@Sendable (_ proof: String) -> JSONValue)
    }

    /// Which proof of possession goes with it (RFC 9449 §4).
    enum Proof: Sendable {
        case none
        /// One by the key of the session; none where the policy is ``KeyPolicy/none``.
        case session
        /// One by the key of the store whatever the policy is: for trusted devices and possession.
        case device
    }

    /// How often a request without an answer is sent again.
    enum Repeats: Sendable {
        /// Once only: the request must not come twice, or the caller has a rule of its own.
        case never
        /// Until it is answered, for 45 s: the server answers the same request again.
        case whileLost
    }

    var method = "POST"
    /// Absolute, may have a query.
    var path: String
    var body = Body.none
    /// Goes with `Authorization`.
    var token: AccessToken?
    var proof = Proof.none
    var repeats = Repeats.never
    /// The nonce to begin with, such as the one of an `authToken` of possession.
    var nonce: String?
    /// The server takes the nonce of this proof once only.
    var spendsNonce = false
    /// Seconds for which the server may hold the call, because there is nothing to tell yet.
    var held: TimeInterval = 0

    /// Whether an attempt has a proof, so that the server may ask for a nonce.
    var hasProof: Bool {
        if case .proving = body { return true }
        return proof != .none
    }

    /// The same request, sent by mistake twice by an HTTP stack, leaves the second one without effect: then a new proof
    /// may be tried.
    var mayFollowUsedProof: Bool { method != "POST" || path == Path.token }

    /// The path as a log may show it: without query, and without the code that a device shows.
    var visiblePath: String {
        path.hasPrefix("/connect/device/") ? "/connect/device/…" : String(path.prefix { $0 != "?" })
    }
}

/// Paths of the server that more than one part of the library calls.
enum Path {
    static let token = "/connect/token"
    static let revoke = "/connect/revoke"
    static let sessions = "/connect/sessions"
    static let ownDevice = "/connect/devices/self"
    static let discovery = "/.well-known/openid-configuration"

    /// The path of one item of a list. - Throws: ``PosternError/misuse(_:)`` for an id that would lead to the list itself, or
    /// above it: what is meant for one item must not reach all.
    static func item(_ id: String, of list: String) throws -> String {
        guard !["", ".", ".."].contains(id) else { throw PosternError.misuse("an id is empty, or no id") }
        return "\(list)/\(Form.escape(id))"
    }
}

/// What the server decided. ``Answer/json`` is `nil` for a body that is empty, too long or none.
struct Answer: Sendable {
    /// Bytes. The server has no longer answer.
    static let largestBody = 1 << 20

    let status: Int
    let body: Data
    let json: JSONValue?
    let response: HTTPURLResponse

    init(_ body: Data, _ response: HTTPURLResponse) {
        self.response = response
        self.body = body
        status = response.statusCode
        json = body.isEmpty || body.count > Self.largestBody ? nil : JSONValue(body)
    }

    var isSuccess: Bool { (200..<300).contains(status) }

    /// `error` of an OAuth answer.
    var error: String? { json?["error"]?.string }

    /// A field of the header.
    func field(_ name: String) -> String? { response.value(forHTTPHeaderField: name) }

    /// The challenges of `WWW-Authenticate`.
    var challenges: [AuthenticationChallenge] {
        field("WWW-Authenticate").map(AuthenticationChallenge.all) ?? []
    }

    /// `Retry-After` in seconds (RFC 9110 §10.2.3); the form with a date is not read.
    var retryAfter: TimeInterval? {
        guard let text = field("Retry-After"), let seconds = UInt32(text.trimmingCharacters(in: .whitespaces)) else {
            return nil
        }
        return TimeInterval(seconds)
    }

    /// The `DPoP-Nonce` of the answer, if there is exactly one (RFC 9449 §8.1: one or more NQCHAR). Fields of one name come
    /// joined by commas.
    var nonce: String? {
        guard let text = field("DPoP-Nonce")?.trimmingCharacters(in: .whitespaces), (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && ![0x22, 0x2C, 0x5C].contains($0) })
        else { return nil }
        return text
    }
}
