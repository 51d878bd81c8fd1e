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

extension Substring.UTF8View {
    /// Without the spaces and tabs at the beginning.
    var withoutLeadingSpaces: Substring.UTF8View { drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") } }
}
