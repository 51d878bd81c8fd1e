import Grants
import HTTPTypes

/// Counts refused calls per source (policy `refused`): a source that was answered 401 or 403 too often gets 429
/// instead.
///
/// Wraps every route, so that no endpoint can forget it. A served call costs one comparison of its status. An
/// authenticated client that introspects an inactive token was served; so was a client whose request was malformed.
struct RefusalLimit: Sendable {
    let limiter: RateLimiter

    /// The routes, limited.
    func applied(to routes: [Route]) -> [Route] {
        routes.map { route in
            route.mapHandlers { handler in
                { exchange in
                    let answer = await handler(exchange)
                    guard answer.status == .unauthorized || answer.status == .forbidden else { return answer }
                    return await counted(answer, exchange)
                }
            }
        }
    }

    private func counted(_ refusal: Answer, _ exchange: Exchange) async -> Answer {
        do {
            try await limiter.count(.refused, [.init(.source, exchange.source)], realm: exchange.realm)
            return refusal
        } catch {
            // If the count fails, the refusal is sent unchanged.
            return error.limit == nil ? refusal : .oauth(error)
        }
    }
}
