import PosternClient

/// Runs a flow. - Throws: ``CommandFailure`` for what the client library throws.
func explaining(_ flow: () async throws -> Void) async throws {
    do { try await flow() } catch let error as PosternError { throw CommandFailure(error.explanation.harmless) }
}

extension PosternError {
    /// One line for the person at the terminal, who sees the requests and answers above it.
    fileprivate var explanation: String {
        switch self {
        case .wrongCode: "the server answered 400: the code is wrong or expired, or was used"
        case .secondFactorNeeded:
            "the server answered 400: the account has two-factor authentication; --totp takes what its app shows"
        case .secondFactorWrong: "the server answered 400: the code of the authenticator app is wrong, or was used"
        case .denied: "the person refused"
        case .expired: "the request has expired"
        case .stepUpNeeded: "the server wants a newer or stronger sign-in"
        case .addressProofNeeded: "the provider does not vouch for the address"
        case .namesNeeded(let names): "a registration needs \(names.joined(separator: " and "))"
        case .rateLimited(let seconds): "too many requests: try again in \(Int(seconds)) seconds"
        case .unavailable: "the server does not answer, or not as it should"
        case .signedOut: "the session is over"
        case .foreignLink: "no request of this app asked for the link"
        case .cancelled: "the sign-in was given up"
        case .refused("unknown_host", _, _): "no realm has this host: the answer names those that there are"
        case .refused(let code, let description, let status):
            "the server answered \(status)" + [code, description ?? ""].filter { $0 != "" }.map { ": \($0)" }.joined()
        case .misuse(let text): text
        }
    }
}
