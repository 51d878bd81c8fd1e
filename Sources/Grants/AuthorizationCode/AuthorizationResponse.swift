/// An answer to an authorization request that goes to the client's redirect URI (RFC 6749 §4.1.2, RFC 9207).
public struct AuthorizationResponse: Sendable, Equatable {
    /// How it travels (OAuth 2.0 Multiple Response Type Encoding Practices §2.1).
    public enum Mode: String, Sendable {
        /// Appended to the redirect URI.
        case query
        /// In a form that the browser posts.
        case formPost = "form_post"
    }

    /// Where the answer to a request goes.
    struct Target: Sendable, Equatable {
        let redirectURI: String
        let mode: Mode
        let state: String?
        let issuer: String
        let pushedID: [UInt8]?
        /// Of a request for a proof, whose response has members of its own.
        var challengeID: Int64?
    }

    let target: Target
    /// `code`, or `error` and `error_description`.
    private let answer: [(name: String, value: String)]
    /// The error; `nil` for a success.
    public let error: AuthorizationError?
    /// `error_description`; never holds anything from the request.
    public let description: String?

    /// The authorization code in it; `nil`: it is an error.
    public var code: AuthorizationCode? { answer.first { $0.name == "code" }.flatMap { AuthorizationCode($0.value) } }

    /// The redirect URI, byte for byte.
    public var redirectURI: String { target.redirectURI }
    /// How it travels.
    public var mode: Mode { target.mode }
    /// The members of the response, in order: `code` or `error` and `error_description`, then `state` if one was sent,
    /// and `iss`. With a number: `code` or `error`, `state`, and beside a code `challenge_id`.
    public var members: [(name: String, value: String)] {
        let state = target.state.map { [("state", $0)] } ?? []
        guard let number = target.challengeID else { return answer + state + [("iss", target.issuer)] }
        return answer.prefix(1) + state + (error == nil ? [("challenge_id", String(number))] : [])
    }

    /// The redirect URI with the members appended to its own query.
    public var url: String {
        let pairs = members.map { "\($0.name)=\(Self.escaped($0.value))" }.joined(separator: "&")
        return Self.appending(pairs, to: redirectURI)
    }

    /// A URI with more pairs in its query; it has no fragment.
    static func appending(_ pairs: String, to uri: String) -> String {
        guard uri.utf8.contains(UInt8(ascii: "?")) else { return uri + "?" + pairs }
        return uri + (uri.hasSuffix("?") || uri.hasSuffix("&") ? "" : "&") + pairs
    }

    /// The authorization code is issued.
    static func code(_ code: String, to target: Target) -> AuthorizationResponse {
        AuthorizationResponse(target: target, answer: [("code", code)], error: nil, description: nil)
    }

    /// The request is refused.
    static func failure(
        _ error: AuthorizationError, _ description: String, to target: Target
    ) -> AuthorizationResponse {
        AuthorizationResponse(
            target: target, answer: [("error", error.rawValue), ("error_description", description)], error: error,
            description: description)
    }

    /// Two responses with the same members to the same URI are equal.
    public static func == (left: AuthorizationResponse, right: AuthorizationResponse) -> Bool {
        left.target == right.target && left.members.elementsEqual(right.members) { $0 == $1 }
    }

    /// RFC 3986 §2.3: everything but unreserved characters.
    static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The `error` of an authorization response (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6).
public enum AuthorizationError: String, Sendable {
    case invalidRequest = "invalid_request"
    case unauthorizedClient = "unauthorized_client"
    case accessDenied = "access_denied"
    case unsupportedResponseType = "unsupported_response_type"
    case invalidScope = "invalid_scope"
    /// RFC 8707 §2.
    case invalidTarget = "invalid_target"
    case temporarilyUnavailable = "temporarily_unavailable"
    case loginRequired = "login_required"
    case consentRequired = "consent_required"
    case interactionRequired = "interaction_required"
    case requestNotSupported = "request_not_supported"
    case requestURINotSupported = "request_uri_not_supported"
    case registrationNotSupported = "registration_not_supported"
    /// OpenID Connect Core Unmet Authentication Requirements 1.0.
    case unmetAuthenticationRequirements = "unmet_authentication_requirements"

    /// Parameters that stand for features that are not offered.
    static let unsupportedParameters: [(name: String, error: AuthorizationError)] = [
        ("request", .requestNotSupported), ("request_uri", .requestURINotSupported),
        ("registration", .registrationNotSupported),
    ]
}

/// What an authorization request is refused with that must not be sent to its redirect URI.
public enum AuthorizationPageError: String, Sendable, CaseIterable {
    case invalidRequest = "invalid_request"
    case hostedDisabled = "hosted_disabled"
    case invalidClient = "invalid_client"
    case invalidRequestURI = "invalid_request_uri"
    case invalidRedirectURI = "invalid_redirect_uri"
}

/// Why an authorization request is refused.
public enum AuthorizationRefusal: Error, Sendable, Equatable {
    /// Told to the person on a page, 400.
    case page(AuthorizationPageError)
    /// Told to the client at its redirect URI.
    case response(AuthorizationResponse)
}
