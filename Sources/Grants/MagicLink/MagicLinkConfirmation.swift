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

    public init(links: MagicLinkStore, limiter: RateLimiter, turns: Turns) {
        self.links = links
        self.limiter = limiter
        self.turns = turns
    }

    /// What the page of a link says: where its request came from, or why it can no longer be used.
    /// - Throws: `rate_limited` (policy `magic-link`), or what the database threw.
    public func page(
        of link: MagicLink, realm: Realm, source: String
    ) async throws -> MagicLinkStore.Page {
        try await limiter.admitting(.magicLink, [.init(.source, source)], realm: realm) { permits in
            try await links.page(realm: realm.id, user: link.user, tokenHash: link.tokenHash, permits: permits)
        }
    }

    /// Confirms or ends the link. - Throws: `rate_limited` (policy `magic-link`), or what the database threw.
    public func answer(
        _ choice: Choice, for link: MagicLink, realm: Realm, source: String
    ) async throws -> Outcome {
        var admission = Admission(limiter, .magicLink, [.init(.source, source)], realm: realm)
        let number: Int32? = if case .number(let number) = choice { Int32(clamping: number) } else { nil }
        return try await turns.retryWhileBusy(.whenBusy(link.turn(realm: realm))) {
            let outcome = try await admission.admitting { permits in
                try await links.confirm(
                    realm: realm.id, user: link.user, tokenHash: link.tokenHash, number: number, source: source,
                    permits: permits)
            }
            return outcome == .busy ? nil : outcome
        }
    }
}
