public import Persistence

/// `urn:cocoar:magic`: a link from the mailbox, opened in the app or confirmed elsewhere while the app polls.
public struct MagicLinkFactor: Factor {
    /// `urn:cocoar:magic`.
    public let grantType = GrantType.magic

    private let links: MagicLinkStore
    private let keyring: Keyring

    public init(links: MagicLinkStore, keyring: Keyring) {
        self.links = links
        self.keyring = keyring
    }

    /// What an app or a page can present.
    public enum Presented: Sendable {
        /// The link itself, and the handle that it must belong to if one is named.
        case link(MagicLink, handle: AuthSessionHandle?)
        /// The handle of a request whose link was confirmed elsewhere.
        case handle(AuthSessionHandle)
    }

    /// `user_id` and `magic_token`, or `auth_session` alone. With all three the link must belong to the handle.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        try Self.requireParameters(form)
    }

    static func requireParameters(_ form: FormParameters) throws(TokenError) {
        switch (form["user_id"], form["magic_token"], form["auth_session"]) {
        case (.some, .some, _), (nil, nil, .some): return
        case (nil, nil, nil): throw .missing("magic_token or auth_session")
        case (nil, .some, _): throw .missing("user_id")
        case (_, nil, _): throw .missing("magic_token")
        }
    }

    /// `nil` for any spelling of a link or handle but the one that was given out.
    public func read(_ form: FormParameters, _ context: RequestContext) -> Presented? {
        var handle: AuthSessionHandle?
        if let presented = form["auth_session"] {
            guard let opened = AuthSessionHandle(presented, realm: context.realm.id, keyring: keyring) else {
                return nil
            }
            handle = opened
        }
        guard form["magic_token"] != nil else { return handle.map(Presented.handle) }
        return MagicLink(userID: form["user_id"], token: form["magic_token"]).map { .link($0, handle: handle) }
    }

    /// A poll: a link travels through a mailbox and a browser.
    public func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool { form["magic_token"] == nil }

    /// One turn for all that ends links of the account, and one for all polls with the handle.
    public func turn(of presented: Presented, _ context: RequestContext) -> AttemptTurn {
        switch presented {
        case .link(let link, _): .whenBusy(link.turn(realm: context.realm))
        case .handle(let handle): .whenBusy(Polling.turn(ofHandle: handle.id, in: context.realm))
        }
    }

    /// A secret from the mailbox that works once, as a code does; nothing more.
    public func amr(of presented: Presented) -> [String] {
        switch presented {
        case .link(_, let handle): MessageAddress.amr(by: handle?.channel)
        case .handle(let handle): MessageAddress.amr(by: handle.channel)
        }
    }

    /// Consumes the link, or its confirmation, and opens the session.
    public func redeem(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let (realm, client) = (context.realm.id, context.client.key)
        let (outcome, verdict) =
            switch presented {
            case .link(let link, let handle):
                try await links.redeem(
                    realm: realm, client: client, permission: context.permission(for: grantType), user: link.user,
                    tokenHash: link.tokenHash, handle: handle?.id, session: session, permits: permits,
                    secondFactor: proof)
            case .handle(let handle):
                try await links.poll(
                    realm: realm, client: client, permission: context.permission(for: grantType), handle: handle.id,
                    session: session,
                    permits: permits, secondFactor: proof)
            }
        return (outcome.map(Self.outcome), verdict)
    }

    /// For a wrong link, a used one and an expired one.
    public func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired link.", reason: reason)
    }

    private static func outcome(_ outcome: MagicLinkStore.Outcome) -> FactorOutcome {
        switch outcome {
        case .pending: .waiting(Polling(.pending, of: "link"))
        case .slowDown: .waiting(Polling(.slowDown, of: "link"))
        case .denied: .waiting(Polling(.denied, of: "link"))
        case .busy: .busy
        case .decided(let outcome): .decided(outcome)
        }
    }
}
