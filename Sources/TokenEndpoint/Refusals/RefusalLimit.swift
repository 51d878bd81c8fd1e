import Grants
import HTTPTypes

/// Counts refused calls by where they come from (policy `refused`): whoever is answered 401 or 403 too often gets 429 instead.
///
/// Stands around every route, so that no endpoint can forget it. A call that is served costs nothing: only its status is looked
/// at. An authenticated client that introspects a token and learns that it is not active was served; so was one whose request was
/// malformed.
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
            // A refusal that cannot be counted stays what it is.
            return error.limit == nil ? refusal : .oauth(error)
        }
    }
}
