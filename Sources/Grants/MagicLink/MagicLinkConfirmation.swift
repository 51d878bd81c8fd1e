public import Persistence

/// `/magic-login`: what the page offers, and what an answer does (contract §4.2). Looking changes nothing; only an answer does.
public struct MagicLinkConfirmation: Sendable {
    /// An answer to the page's question.
    public enum Choice: Sendable, Equatable {
        case number(Int)
        /// "None of these": as final as a wrong number.
        case none
    }

    /// What an answer did.
    public typealias Outcome = MagicLinkStore.Confirmation

    private let links: MagicLinkStore
    private let limiter: RateLimiter
    private let keyring: Keyring

    /// Works on `links`.
    public init(links: MagicLinkStore, limiter: RateLimiter, keyring: Keyring) {
        self.links = links
        self.limiter = limiter
        self.keyring = keyring
    }

    /// The three numbers to offer, ascending; three that look the same for a link nobody was sent.
    /// - Throws: `temporarily_unavailable`.
    public func numbers(for link: MagicLink, realm: Realm) async throws(TokenError) -> [Int] {
        do {
            let right = try await links.number(realm: realm.id, user: link.user, tokenHash: link.tokenHash)
            return MatchNumber.offered(for: link, right: right.map { Int($0) }, under: keyring.newest)
        } catch {
            throw .unavailable("\(error)")
        }
    }

    /// Confirms or ends the link. - Throws: `rate_limited` (policy `token`), `temporarily_unavailable`.
    public func answer(
        _ choice: Choice, for link: MagicLink, realm: Realm, source: String
    ) async throws(TokenError) -> Outcome {
        let claim = try await limiter.claim(.token, [.init(.source, source)], realm: realm)
        let number: Int32? = if case .number(let number) = choice { Int32(clamping: number) } else { nil }
        do {
            let (outcome, verdict) = try await links.confirm(
                realm: realm.id, user: link.user, tokenHash: link.tokenHash, number: number, source: source,
                permits: claim.permits)
            try limiter.settle(claim, verdict)
            guard outcome != .limited else { throw TokenError.unavailable("limit without a verdict") }
            return outcome
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
    }
}
