import Persistence

/// Takes the permits of a request for a code or a link, and records the request with them (docs/decisions/0025).
///
/// A stranger's request is counted under the address it asks for, and finds four fifths of the limits of the client and
/// the App. One with an ID-token hint is counted under the hint's own session instead of the address, and may take from
/// the fifth that strangers leave. Whether the hint fits the address only a worker may look up, so a hint that does not
/// fit gains nothing here that its holder can use against others: the worker takes the address's permits afterwards,
/// before any mail.
///
/// Anybody may name any public client, so a single network could use up what strangers find of the client and the App.
/// When it has, each other source still finds a few permits of a quarter that is kept for that (an IPv6 /48 is one).
///
/// What messages to phones may cost is counted when one is queued, not here (docs/decisions/0053). A request only looks
/// whether there are permits. Where strangers have used up what is open to all, a hint looks at what is kept for known
/// devices. Without a hint a source has a few requests more, whose messages go to proven numbers alone; the answer is
/// the same for every number.
///
/// A backend that has a number proven answers for it, so what it asks for a number is counted under the backend. What
/// strangers ask for that number, anonymously, does not stop it.
struct RequestAdmission: Sendable {
    private let limiter: RateLimiter

    /// Counts with `limiter`.
    init(_ limiter: RateLimiter) {
        self.limiter = limiter
    }

    /// Runs the statement that records the request, once it has its permits. The statement is run again, without having
    /// recorded anything, when the request found what is open of a broad limit used up.
    /// - Parameters:
    ///   - mayBeUnknown: the message goes to any address, which counts among those that the source asks codes for
    ///     without an account.
    ///   - account: who names the address; all that one account asks for count together.
    ///   - statement: answers `nil` when it was refused a permit.
    /// - Throws: `rate_limited`, or what the database threw.
    func admit<Answer>(
        _ request: SignInRequest, _ policy: RateLimit.Policy, mayBeUnknown: Bool = false, account: UUIDValue? = nil,
        _ statement: (PermitRequest) async throws -> (Answer?, PermitVerdict)
    ) async throws -> Answer {
        let toPhone = request.address.channel != nil
        return try await limiter.admitting(
            policy, realm: request.realm, reservable: toPhone ? Self.ofMessages : Self.ofMails,
            from: toPhone || request.hint != nil ? .reserve : .each,
            subjects: { reserved in
                toPhone
                    ? Self.looks(of: request, reserved)
                        + Self.subjects(of: request, mayBeUnknown, by: account, fromReserve: [])
                    : Self.subjects(of: request, mayBeUnknown, by: account, fromReserve: reserved)
            }, statement)
    }

    /// Takes the permits of a request before something that costs is done for it, such as a call to an operator. The
    /// statement that records the request takes none then.
    /// - Throws: `rate_limited`, or what the database threw.
    func takePermits(of request: SignInRequest, _ policy: RateLimit.Policy) async throws {
        try await admit(request, policy) { permits in
            ((), try await limiter.verdict(on: permits, realm: request.realm))
        }
    }

    /// The broad limits, which strangers cannot use up for known devices.
    private static let ofMails: Set<RateLimit.Dimension> = [.client, .app]
    private static let ofMessages: Set<RateLimit.Dimension> = [.client, .app, .prefix, .country, .spend]

    /// Always in the same order, so that two requests never deadlock over permits.
    private static func subjects(
        of request: SignInRequest, _ mayBeUnknown: Bool, by account: UUIDValue?,
        fromReserve reserved: Set<RateLimit.Dimension>
    ) -> [RateLimiter.Subject] {
        var subjects: [RateLimiter.Subject] = []
        if request.hint == nil {
            let target = (request.backend.map { "possession|\($0.clientID)|" } ?? "") + request.address.key
            subjects.append(.init(.target, "\(target)|\(request.source)"))
            subjects.append(.init(.targetTotal, target))
        }
        subjects.append(.init(.source, request.source))
        if mayBeUnknown { subjects.append(.init(.registrations, request.source)) }
        if request.address.channel == nil {
            func take(_ dimension: RateLimit.Dimension, of value: String) {
                guard reserved.contains(dimension) else {
                    return subjects.append(.init(dimension, value, part: .common))
                }
                guard request.hint == nil else {
                    return subjects.append(.init(dimension, value, part: .reserve))
                }
                let source = SourceNetwork.whole(request.source)
                subjects.append(.init(dimension, "\(value)|\(source)", part: .share))
                subjects.append(.init(dimension, value, part: .each))
            }
            if let client = request.client { take(.client, of: client.clientID) }
            if let app = request.realm.app { take(.app, of: app.slug) }
        }
        // No address has these keys: they hold no "@" and begin with no "+".
        if let account { subjects.append(.init(.targetTotal, "account|\(account)")) }
        if let hint = request.hint {
            // One account takes no more from the reserve than one device may ask for.
            if !reserved.isEmpty { subjects.append(.init(.targetTotal, "reserve|\(hint.user)")) }
            subjects.append(.init(.targetTotal, "device|\(hint.session)"))
        }
        return subjects
    }

    /// What a request for a message to a phone looks at, before it takes anything. The keys are those of
    /// postern.message_budgets.
    private static func looks(
        of request: SignInRequest, _ reserved: Set<RateLimit.Dimension>
    ) -> [RateLimiter.Subject] {
        guard case .phone(let number, _) = request.address else { return [] }
        let budgets: [(RateLimit.Dimension, String?)] = [
            (.client, request.client?.clientID), (.app, request.realm.app?.slug),
            (.prefix, String(number.text.dropLast(4))), (.country, number.region), (.spend, "all"),
        ]
        return budgets.compactMap { dimension, value in
            guard let value else { return nil }
            guard reserved.contains(dimension) else { return .init(dimension, value, part: .open, amount: 0) }
            let asker = request.hint.map { "device|\($0.session)" } ?? request.source
            return .init(dimension, "attempts|\(value)|\(asker)", part: .reserve)
        }
    }
}

extension RateLimiter {
    /// As ``admitting(_:_:realm:_:)``, again from what is reserved when the open part of a budget is used up. A
    /// budget that is not divided has no reserve.
    /// - Parameters:
    ///   - reservable: the dimensions of which the request may use the reserve.
    ///   - part: the part that is reserved for it.
    ///   - subjects: what the request takes, given the dimensions whose reserve it uses.
    func admitting<R>(
        _ policy: RateLimit.Policy, realm: Realm, reservable: Set<RateLimit.Dimension>,
        from part: RateLimit.Part = .reserve, subjects: (Set<RateLimit.Dimension>) -> [Subject],
        _ statement: (PermitRequest) async throws -> (R?, PermitVerdict)
    ) async throws -> R {
        var reserved: Set<RateLimit.Dimension> = []
        while true {
            do {
                return try await admitting(policy, subjects(reserved), realm: realm, statement)
            } catch let error as TokenError {
                guard let dimension = error.limit?.dimension, reservable.contains(dimension),
                    !reserved.contains(dimension), realm.rateLimits[policy]?[dimension]?.part(part) != nil
                else { throw error }
                reserved.insert(dimension)
            }
        }
    }
}
