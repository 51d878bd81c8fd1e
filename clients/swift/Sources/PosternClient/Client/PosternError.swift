import Foundation

/// What every function of this library throws.
public enum PosternError: Error, Sendable, Hashable {
    /// The code is wrong or expired, or was used.
    case wrongCode
    /// The account has a second factor: call again with it. The first factor is not used up.
    case secondFactorNeeded
    /// The second factor is wrong. The first factor is not used up.
    case secondFactorWrong
    /// The person refused: a wrong number, "this was not me", a cancelled page.
    case denied
    /// A link, an approval or a device code has expired.
    case expired
    /// The sign-in is too old or too weak for this call: see ``PosternClient/stepUp(_:by:)``.
    case stepUpNeeded(StepUpChallenge)
    /// The provider does not vouch for the address: sign in another way, then add the identity.
    case addressProofNeeded
    /// A registration needs these names: `Firstname`, `Lastname`.
    case namesNeeded([String])
    /// Too many requests. Seconds until the next one may be answered.
    case rateLimited(retryAfter: TimeInterval)
    /// Nothing was decided: no answer, a fault of the server, or a locked store. The same call may succeed later.
    /// Seconds, if the server named them.
    case unavailable(retryAfter: TimeInterval?)
    /// There is no session.
    case signedOut(SignOutReason)
    /// No request of this app asked for the link.
    case foreignLink
    /// The dialog, the browser or the task was cancelled.
    case cancelled
    /// Anything else that the server decided: `error` or the title of the answer, its text, its status.
    case refused(code: String, description: String?, status: Int)
    /// A mistake in the use of this library: what, and what to do instead.
    case misuse(String)
}

extension PosternError: LocalizedError {
    /// For the log of a developer; it is not a text for users.
    public var errorDescription: String? { "\(self)" }
}
