import Grants
import HTTPTypes

/// The access token of a request, not looked at yet. Only this folder reads it.
enum PresentedToken {
    /// No `Authorization` header, or one of another scheme.
    case none
    /// A scheme without exactly one token, or more than one header.
    case malformed
    /// Of scheme `Bearer` (RFC 6750 §2.1).
    case bearer(String)
    /// Of scheme `DPoP` (RFC 9449 §7.1): worth nothing without a proof.
    case proven(String)

    var text: String? {
        switch self {
        case .bearer(let text), .proven(let text): text
        case .none, .malformed: nil
        }
    }
}

extension Exchange {
    /// The token of the header.
    func presentedToken() -> PresentedToken {
        let values = request.headers[values: .authorization]
        guard let value = values.first else { return .none }
        let parts = value.split(separator: " ", omittingEmptySubsequences: true)
        guard values.count == 1 else { return .malformed }
        switch parts.first?.lowercased() {
        case "bearer": return parts.count == 2 ? .bearer(String(parts[1])) : .malformed
        case "dpop": return parts.count == 2 ? .proven(String(parts[1])) : .malformed
        default: return .none
        }
    }

    /// The token of a form body (RFC 6750 §2.2); `nil`: there is none. - Throws: `invalid_request` for two tokens.
    func tokenInBody() throws(Refusal) -> PresentedToken? {
        guard hasContentType("application/x-www-form-urlencoded") else { return nil }
        guard let token = try form()["access_token"] else { return nil }
        guard !request.headers.has(.authorization) else {
            throw Refusal(.oauth(TokenError(.invalidRequest, "Send the access token once.")))
        }
        return .bearer(token)
    }
}
