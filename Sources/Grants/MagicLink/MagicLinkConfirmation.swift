public import Persistence

/// `/magic-login`: what the page shows about a request, and what an answer does. Only an answer changes something.
public struct MagicLinkConfirmation: Sendable {
    /// An answer to the page's question.
    public enum Choice: Sendable, Equatable {
        /// What was typed.
        case number(Int)
        /// "This was not me": as final as a wrong number, and for a while no stranger's request sends a link.
        case notMe
    }

    /// What an answer did.
    public typealias Outcome = MagicLinkStore.Confirmation

    private let links: MagicLinkStore
    private let limiter: RateLimiter
    private let turns: Turns

    /// Works on `links`.
    public init(links: MagicLinkStore, limiter: RateLimiter, turns: Turns) {
        self.links = links
        self.limiter = limiter
        self.turns = turns
    }

    /// Where the request of a link came from; `nil` when the link does not exist.
    /// - Throws: `rate_limited` (policy `magic-link`), `temporarily_unavailable`.
    public func origin(
        of link: MagicLink, realm: Realm, source: String
    ) async throws(TokenError) -> RequestOrigin? {
        let claim = try await limiter.claim(.magicLink, [.init(.source, source)], realm: realm)
        do {
            let (page, verdict) = try await links.page(
                realm: realm.id, user: link.user, tokenHash: link.tokenHash, permits: claim.permits)
            try limiter.settle(claim, verdict)
            guard case .shown(let origin) = page else { throw TokenError.unavailable("limit without a verdict") }
            return origin
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
    }

    /// Confirms or ends the link. - Throws: `rate_limited` (policy `magic-link`), `temporarily_unavailable`.
    public func answer(
        _ choice: Choice, for link: MagicLink, realm: Realm, source: String
    ) async throws(TokenError) -> Outcome {
        let claim = try await limiter.claim(.magicLink, [.init(.source, source)], realm: realm)
        let number: Int32? = if case .number(let number) = choice { Int32(clamping: number) } else { nil }
        var permits = claim.permits
        do {
            return try await turns.untilFree(link.turn(realm: realm)) {
                let (outcome, verdict) = try await links.confirm(
                    realm: realm.id, user: link.user, tokenHash: link.tokenHash, number: number, source: source,
                    permits: permits)
                try limiter.settle(claim, verdict)
                permits = PermitRequest()
                guard outcome != .limited else { throw TokenError.unavailable("limit without a verdict") }
                return outcome == .busy ? nil : outcome
            }
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
    }
}

extension MagicLink {
    /// The key under which statements that end links of the account take turns.
    func turn(realm: Realm) -> String { "links|\(realm.id)|\(user)" }
}
