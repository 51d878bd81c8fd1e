import Foundation

/// What one refresh came to.
enum RefreshOutcome {
    case rotated(TokenAnswer)
    /// Nothing was decided. Seconds, if the server named them.
    case lost(TimeInterval?)
    /// `invalid_grant`.
    case ended
    case refused(PosternError)
}

/// How long a refresh goes on without a decision.
struct Patience {
    /// Seconds. After them a caller shows something; the next call goes on with the same token.
    static let ofRefresh: TimeInterval = 20

    private let end: TimeInterval
    private var pauses = Pauses()

    init(until end: TimeInterval) { self.end = end }

    /// Seconds to wait before the next attempt; `nil` when it is over.
    mutating func pause(_ retryAfter: TimeInterval?, now: TimeInterval) -> TimeInterval? {
        let pause = max(pauses.next(), retryAfter ?? 0)
        return now + pause <= end ? pause : nil
    }
}

extension PosternClient {
    /// Presents a refresh token once (RFC 6749 §6).
    func refreshOutcome(_ refreshToken: String, _ audience: Audience) async throws -> RefreshOutcome {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refreshToken)] + audience.form
        let call = Call(
            path: Path.token, body: .form(form + [("client_id", configuration.clientID)]), proof: .session)
        switch try await outcome(of: call) {
        case .lost(let retryAfter): return .lost(retryAfter)
        case .answer(let answer):
            switch (answer.status, answer.error) {
            case (200, _):
                guard let tokens = TokenAnswer(answer.json, at: surroundings.now()) else { return .lost(nil) }
                if let time = tokens.idToken?.issuedAt { await learnTime(time) }
                return .rotated(tokens)
            case (400, "invalid_grant"?): return .ended
            case (429, _): return .lost(answer.retryAfter)
            case (200..<300, _): return .lost(nil)
            default: return .refused(PosternError(answer, of: .other))
            }
        }
    }

    /// - Throws: ``PosternError/unavailable(retryAfter:)`` when the patience is over.
    func wait(_ patience: inout Patience, _ retryAfter: TimeInterval?) async throws {
        guard let pause = patience.pause(retryAfter, now: surroundings.uptime()) else {
            throw PosternError.unavailable(retryAfter: retryAfter)
        }
        log("retry", ["path": Path.token])
        do { try await surroundings.sleep(pause) } catch { throw PosternError.cancelled }
    }
}
