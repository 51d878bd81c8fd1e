import Grants
import HTTPTypes

/// Counts refused calls by their source (policy `refused`): a source that is answered 401 or 403 too often gets 429
/// instead.
///
/// ``Responder`` applies it to every route, so that no endpoint can forget it. A call that is served costs nothing:
/// only its status is looked at. A refused proof of possession counts too: to verify one costs. An authenticated
/// client that introspects a token and learns that it is not active was served; so was one whose request was malformed.
struct RefusalLimit: Sendable {
    let limiter: RateLimiter

    /// The answer, or 429 in its place.
    func counted(_ answer: Answer, _ exchange: Exchange) async -> Answer {
        guard answer.isRefusal || answer.status == .unauthorized || answer.status == .forbidden else { return answer }
        do {
            try await limiter.count(.refused, [.init(.source, exchange.source)], realm: exchange.realm)
            return answer
        } catch {
            // If the count fails, the refusal is sent unchanged.
            let error = TokenError(error)
            return error.limit == nil ? answer : .oauth(error)
        }
    }
}
