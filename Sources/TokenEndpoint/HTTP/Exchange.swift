public import Grants
import HTTPTypes
public import Logging
package import NIOCore
import Persistence
import Synchronization

/// One request on its way through a handler, with the realm its host named.
public struct Exchange: Sendable {
    /// The request, body and all.
    public let request: Request
    /// The tenant, as the host shows it: on an App's host with `realm.app`.
    public let realm: Realm
    /// The canonical host the request was for.
    public let host: String
    /// The request headers that chose the realm, for `Vary`.
    let vary: String
    /// What followed the prefix of a route with a path parameter.
    public let pathParameter: String
    /// The caller's address for limits and audit; IPv6 by /64.
    public let source: String
    /// When the whole request had arrived (``Request/arrivedAt``): fixed deadlines count from here.
    public let arrivedAt: ContinuousClock.Instant
    /// The number of the request since the process started.
    let number: UInt64
    /// The trace that the request belongs to, while traces are exported.
    let trace: String?
    let baseLogger: Logger
    /// The client that the request names; only kept where it decides about the web origin.
    var namedClient: NamedClient?
    /// Only kept for a request with a proof of possession.
    var nextNonce: NextNonce?

    /// How long the request has been here.
    var age: Duration { arrivedAt.duration(to: .now) }

    /// Carries the request's number and trace; made when something is to be logged.
    public var logger: Logger {
        var logger = baseLogger
        logger[metadataKey: "request"] = "\(number)"
        if let trace { logger[metadataKey: "trace"] = "\(trace)" }
        return logger
    }

    /// Whether a line of that level would be written: making ``logger`` for nothing costs.
    package func logs(_ level: Logger.Level) -> Bool { level >= baseLogger.logLevel }

    /// The body. - Throws: the answer to give for a body that is too large or encoded.
    package func body() throws(Refusal) -> ByteBuffer {
        if let encoding = request.headers[.contentEncoding], encoding.lowercased() != "identity" {
            throw Refusal(.error(.unsupportedMediaType, "invalid_request"))
        }
        guard !request.isBodyTooLarge else { throw Refusal(.error(.contentTooLarge, "invalid_request")) }
        return request.body
    }

    /// `User-Agent` as far as it is printable ASCII: what people see in the list of their sessions.
    package var userAgent: String? {
        guard let value = request.headers[values: .userAgent].first else { return nil }
        let kept = value.utf8.lazy.filter { (0x20...0x7E).contains($0) }.prefix(256)
        return kept.isEmpty ? nil : String(decoding: Array(kept), as: UTF8.self)
    }

    /// Whether the one `Content-Type` is `type`. Its `charset`, if there is one, is a label of UTF-8 (Encoding Standard
    /// §4.2), quoted or not; no other parameter means anything for these types, and what means nothing is ignored
    /// (RFC 2045 §5.2).
    package func hasContentType(_ type: String) -> Bool {
        let values = request.headers[values: .contentType]
        guard let value = values.first, values.count == 1 else { return false }
        if value == type { return true }  // the common spelling
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimmingSpaces.lowercased() }
        return parts.first == type && !value.contains(",")
            && parts.dropFirst().allSatisfy { parameter in
                guard parameter.hasPrefix("charset") else { return true }
                let value = parameter.dropFirst("charset".count).trimmingSpaces
                guard value.first == "=" else { return false }
                let label = value.dropFirst().trimmingSpaces
                let isQuoted = label.count > 1 && label.first == "\"" && label.last == "\""
                return Self.labelsOfUTF8.contains(String(isQuoted ? label.dropFirst().dropLast() : label))
            }
    }

    private static let labelsOfUTF8: Set<String> = [
        "utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8",
    ]

    /// - Throws: the answer of endpoints that exist only while the realm has native grants on.
    func requireNativeGrants() throws(Refusal) {
        guard realm.nativeGrantsEnabled else { throw Refusal(.nativeGrantsDisabled) }
    }

    /// Parses a form body. - Throws: `invalid_request`.
    package func form() throws(Refusal) -> FormParameters {
        guard hasContentType("application/x-www-form-urlencoded") else {
            throw Refusal(
                .oauth(TokenError(.invalidRequest, "The content type must be application/x-www-form-urlencoded.")))
        }
        let body = try body()
        do {
            return try FormParameters(parsing: body.readableBytesView)
        } catch {
            throw Refusal(.oauth(TokenError(.invalidRequest, "The request is malformed.")))
        }
    }

    /// What the `Authorization` header says about the client. - Throws: `invalid_request` for two headers.
    func presentedCredentials() throws(Refusal) -> PresentedCredentials {
        let values = request.headers[values: .authorization]
        guard values.count <= 1 else {
            throw Refusal(.oauth(TokenError(.invalidRequest, "Send one Authorization header.")))
        }
        guard let value = values.first else { return PresentedCredentials(header: .none) }
        let parts = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "basic",
            let basic = PresentedCredentials.Basic(decoding: parts[1].trimmingSpaces)
        else { return PresentedCredentials(header: .unusable) }
        return PresentedCredentials(header: .basic(basic), forwardedFor: forwardedFor)
    }

    /// Whether the client tried to authenticate in the header, so that a 401 must answer in kind (RFC 6749 §5.2).
    var usedAuthorization: Bool { request.headers[.authorization] != nil }

    /// The proof of possession that came with the request; `nil` when there is no `DPoP` field at all.
    var presentedProof: PresentedProof? {
        request.headers.has(.dpop) ? presentedProof(request.headers[values: .dpop]) : nil
    }

    /// A proof for this request, wherever it stood. - Parameter fields: one text for each place.
    func presentedProof(_ fields: [String]) -> PresentedProof {
        PresentedProof(
            fields: fields, method: request.method.rawValue,
            url: RequestedURL(realm: realm, host: host, path: request.path ?? ""))
    }

    /// Verifies the proof of a request that presents no access token, if there is one.
    /// - Throws: `invalid_dpop_proof`, `use_dpop_nonce`.
    func proof(by proofs: Proofs) throws(TokenError) -> ProofUse? {
        guard let presentedProof else { return nil }
        let proof = try proofs.verify(presentedProof, realm: realm)
        nextNonce?.note(proof.freshNonce)
        return proof.use
    }

    /// The token of `Authorization: Bearer` (RFC 6750 §2.1) or `DPoP` (RFC 9449 §7.1).
    func bearer() -> Bearer {
        let values = request.headers[values: .authorization]
        guard let value = values.first else { return .none }
        let parts = value.split(separator: " ", omittingEmptySubsequences: true)
        guard values.count == 1 else { return .malformed }
        switch parts.first?.lowercased() {
        case "bearer": return parts.count == 2 ? .token(String(parts[1])) : .malformed
        case "dpop": return parts.count == 2 ? .proven(String(parts[1])) : .malformed
        default: return .none
        }
    }

    /// The text of the access token, of either scheme (`Bearer`, `DPoP`).
    var presentedToken: String? {
        switch bearer() {
        case .token(let text), .proven(let text): text
        case .none, .malformed: nil
        }
    }

    enum Bearer {
        /// No `Authorization` header, or one of another scheme.
        case none
        /// A scheme without exactly one token, or more than one header.
        case malformed
        case token(String)
        /// Of scheme `DPoP`: worth nothing without a proof.
        case proven(String)
    }
}

/// The nonce that a client uses next, noted by the verifier of its proof.
final class NextNonce: Sendable {
    private let nonce = Mutex<String?>(nil)

    func note(_ nonce: String?) { self.nonce.withLock { $0 = nonce } }

    /// Every 2xx answer carries it (RFC 9449 §8.2).
    func applied(to answer: Answer) -> Answer {
        guard answer.status.kind == .successful, let nonce = nonce.withLock({ $0 }) else { return answer }
        var answer = answer
        answer.headers[.dpopNonce] = nonce
        return answer
    }
}

extension ClientAuthenticator {
    /// The form of a request that a client makes for itself, and the client.
    func authenticate(_ exchange: Exchange) async throws -> (form: FormParameters, client: Client) {
        let (form, authenticated) = try verify(exchange)
        try await spend(authenticated, realm: exchange.realm, source: exchange.source)
        return (form, authenticated.client)
    }

    /// The same for a request with a proof of possession: its assertion is not used up yet.
    func verify(_ exchange: Exchange) throws -> (form: FormParameters, client: Authenticated) {
        let credentials = try exchange.presentedCredentials()
        let form = try exchange.form()
        exchange.nameClient(form["client_id"] ?? credentials.clientID)
        let authenticated = try verify(
            form, credentials, realm: exchange.realm, source: exchange.source, endpoint: exchange.request.path ?? "")
        exchange.namedClient?.note(authenticated.client)
        return (form, authenticated)
    }

    /// Uses up the assertion of a request whose proof was verified, then runs the body, which uses up the proof.
    func spending<R>(
        _ authenticated: Authenticated, _ exchange: Exchange, _ body: () async throws -> R
    ) async throws -> R {
        try await spending(authenticated, realm: exchange.realm, source: exchange.source, body)
    }
}

extension StringProtocol {
    /// Without surrounding spaces and tabs.
    var trimmingSpaces: SubSequence {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) }) else {
            return self[endIndex...]
        }
        return self[first...last]
    }
}
