import Foundation

/// What kind of call an answer belongs to: `invalid_grant` means something else to each.
enum Step: Sendable {
    case code, poll, refresh, other
}

extension PosternError {
    /// The error that an answer without success stands for.
    init(_ answer: Answer, of step: Step) {
        let status = answer.status
        let text =
            answer.json?["error_description"]?.string ?? answer.json?["message"]?.string
            ?? answer.json?["detail"]?.string
        switch (status, answer.error) {
        case (429, _):
            self = .rateLimited(retryAfter: answer.retryAfter ?? answer.json?["retryAfterSeconds"]?.seconds ?? 60)
        case (408, _), (500..., _), (200..<300, _):
            self = .unavailable(retryAfter: answer.retryAfter)
        case (401, "insufficient_user_authentication"?):
            self = StepUpChallenge(answer.response).map(PosternError.stepUpNeeded) ?? Self.refusal(answer, text)
        case (400, "invalid_grant"?):
            switch (text, step) {
            case (Self.secondFactorIsMissing?, _): self = .secondFactorNeeded
            case (Self.secondFactorIsWrong?, _): self = .secondFactorWrong
            case (_, .code): self = .wrongCode
            case (_, .poll): self = .expired
            case (_, .refresh): self = .signedOut(.ended)
            case (_, .other): self = Self.refusal(answer, text)
            }
        case (400, "access_denied"?): self = .denied
        case (400, "expired_token"?): self = .expired
        case (400, "address_proof_required"?): self = .addressProofNeeded
        case (400, "registration_incomplete"?):
            self = .namesNeeded(answer.json?["fields"]?.strings ?? ["Firstname", "Lastname"])
        case (400, "Firstname is required."?): self = .namesNeeded(["Firstname"])
        case (400, "Lastname is required."?): self = .namesNeeded(["Lastname"])
        default: self = Self.refusal(answer, text)
        }
    }

    // Descriptions may change but for these two, which are a part of the interface.
    private static let secondFactorIsMissing = "Two-factor authentication is required; supply totp_code."
    private static let secondFactorIsWrong = "The two-factor code is invalid."

    private static func refusal(_ answer: Answer, _ text: String?) -> PosternError {
        let code = answer.error ?? answer.json?["title"]?.string ?? answer.json?["Message"]?.string
        return .refused(code: code ?? "\(answer.status)", description: text, status: answer.status)
    }
}
