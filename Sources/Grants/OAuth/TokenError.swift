import Persistence

/// A refusal of the token endpoint: an RFC 6749 §5.2 code and the one text that goes with it.
///
/// The reason is for logs and metrics; the client never sees it. Two refusals with the same ``code`` and
/// ``description`` are the same bytes on the wire.
public struct TokenError: Error, Equatable, Sendable {
    /// The `error` member.
    public enum Code: String, Sendable, CaseIterable {
        case invalidRequest = "invalid_request"
        case invalidClient = "invalid_client"
        case invalidGrant = "invalid_grant"
        case unauthorizedClient = "unauthorized_client"
        case unsupportedGrantType = "unsupported_grant_type"
        case invalidScope = "invalid_scope"
        case invalidTarget = "invalid_target"
        /// The link has not been answered yet (RFC 8628 §3.5).
        case authorizationPending = "authorization_pending"
        /// Polled sooner than the interval, which is five seconds longer from now on (RFC 8628 §3.5).
        case slowDown = "slow_down"
        /// The request was refused on the page of its link (RFC 8628 §3.5).
        case accessDenied = "access_denied"
        /// The request for approval is past its time (CIBA Core 1.0 §11).
        case expiredToken = "expired_token"
        /// The message cannot be shown on the device (CIBA Core 1.0 §13).
        case invalidBindingMessage = "invalid_binding_message"
        /// No value of `acr_values` can be met, or the sign-in is older than `max_age` (RFC 9470; OpenID Connect Unmet
        /// Authentication Requirements 1.0).
        case unmetAuthenticationRequirements = "unmet_authentication_requirements"
        /// The proof of possession does not hold, or was used before (RFC 9449 §5).
        case invalidDPoPProof = "invalid_dpop_proof"
        /// The proof needs the nonce that comes with the answer (RFC 9449 §8).
        case useDPoPNonce = "use_dpop_nonce"
        /// The server cannot answer now. An app must keep its session and try again.
        case temporarilyUnavailable = "temporarily_unavailable"
        case rateLimited = "rate_limited"
    }

    /// The `error` member.
    public let code: Code
    /// The `error_description` member; never holds anything from the request.
    public let description: String
    /// For logs and metrics only.
    public let reason: String
    /// Set for ``Code/rateLimited``.
    public let limit: ExceededLimit?
    /// Seconds after which the same request may succeed (`Retry-After`): those of the limit, else one.
    public var retryAfterSeconds: Int { limit?.retryAfterSeconds ?? 1 }
    /// Set for ``Code/useDPoPNonce``: the value of the field `DPoP-Nonce`.
    public internal(set) var nonce: String?

    /// Which limit was hit, as the answer 429 reports it.
    public struct ExceededLimit: Equatable, Sendable {
        /// `policy` member.
        public let policy: RateLimit.Policy
        /// `dimension` member.
        public let dimension: RateLimit.Dimension
        /// `retryAfterSeconds` member and `Retry-After` header.
        public let retryAfterSeconds: Int
    }

    /// A refusal.
    public init(_ code: Code, _ description: String, reason: String? = nil, limit: ExceededLimit? = nil) {
        self.code = code
        self.description = description
        self.reason = reason ?? code.rawValue
        self.limit = limit
    }

    /// The one translation of what the floors below throw: a ``TokenError`` stays what it is, and every other error is
    /// our own fault.
    public init(_ error: any Error) {
        switch error {
        case let error as TokenError: self = error
        case StoreError.proofUsed: self = .invalidProof("used")
        // ``Proofs/using(in:_:)`` puts the nonce in.
        case StoreError.proofForgotten: self = .nonceDue("older than the store of used proofs")
        case StoreError.clientFault(let fault): self = TokenError(fault)
        default: self = .unavailable("\(error)")
        }
    }

    /// What the statement saw and the node's configuration did not is told as if the configuration had shown it: an
    /// `invalid_grant` would make apps sign their users out.
    private init(_ fault: StoreError.ClientFault) {
        let reason = "changed meanwhile: \(fault)"
        switch fault {
        case .client: self = .invalidClient(reason)
        case .permission: self = .mayNotUse(reason)
        case .switch: self = .isSwitchedOff(reason)
        case .realm: self = .unavailable(reason)
        }
    }

    /// One text for everything that can be wrong with a client.
    public static func invalidClient(_ reason: String) -> TokenError {
        TokenError(.invalidClient, "Client authentication failed.", reason: reason)
    }

    /// The client lacks the grant's permission.
    static func mayNotUse(_ reason: String) -> TokenError {
        TokenError(.unauthorizedClient, "The client may not use this grant type.", reason: reason)
    }

    /// The realm has the grant switched off.
    static func isSwitchedOff(_ reason: String) -> TokenError {
        TokenError(.unsupportedGrantType, "The grant type is not supported.", reason: reason)
    }

    /// The proof of possession does not hold.
    static func invalidProof(_ reason: String) -> TokenError {
        TokenError(.invalidDPoPProof, "The DPoP proof is invalid.", reason: reason)
    }

    /// The proof needs a nonce.
    static func nonceDue(_ reason: String, _ nonce: String? = nil) -> TokenError {
        var error = TokenError(.useDPoPNonce, "Use the nonce given in DPoP-Nonce.", reason: reason)
        error.nonce = nonce
        return error
    }

    /// Whether the request is refused because of its proof of possession.
    var isOfProof: Bool { code == .invalidDPoPProof || code == .useDPoPNonce }

    /// The database could not be asked, or its answer is in doubt.
    public static func unavailable(_ reason: String) -> TokenError {
        TokenError(.temporarilyUnavailable, "The service is temporarily unavailable.", reason: reason)
    }

    /// A limit refused the request.
    public static func limited(_ limit: ExceededLimit) -> TokenError {
        TokenError(.rateLimited, "Too many requests.", reason: limit.dimension.rawValue, limit: limit)
    }

    /// The session, or the grant, cannot meet what the request asks for.
    public static func unmetAuthenticationRequirements(_ reason: String) -> TokenError {
        TokenError(
            .unmetAuthenticationRequirements, "The requested authentication context cannot be met.", reason: reason)
    }

    /// A required parameter did not come.
    public static func missing(_ parameter: String) -> TokenError {
        TokenError(.invalidRequest, "The parameter \(parameter) is missing.", reason: "missing \(parameter)")
    }
}
