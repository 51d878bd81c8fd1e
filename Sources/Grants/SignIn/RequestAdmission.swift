import Persistence

/// Takes the permits of a request for a code or a link, and records the request with them (docs/decisions/0025).
///
/// A stranger's request is counted under the address it asks for, and finds four fifths of the limits of the client and
/// the App. One with an ID-token hint is counted under the hint's own session instead of the address, and may take from
/// the fifth that strangers leave. Of prefix and country of a phone number strangers find the whole limit, and a hint
/// finds a fifth beside it; the day's budget is one for all. Whether the hint fits the address
/// only a worker may look up, so a hint that does not fit gains nothing here that its holder can use against others:
/// the worker takes the address's permits afterwards, before any mail.
struct RequestAdmission: Sendable {
    private let limiter: RateLimiter

    /// Counts with `limiter`.
    init(_ limiter: RateLimiter) {
        self.limiter = limiter
    }

    /// Runs the statement that records the request, once it has its permits. The statement is run again, without having
    /// recorded anything, when a hinted request found a broad limit used up and takes from the reserve.
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
        var reserved: Set<RateLimit.Dimension> = []
        while true {
            do {
                return try await limiter.admitting(
                    policy, Self.subjects(of: request, mayBeUnknown, by: account, fromReserve: reserved),
                    realm: request.realm, statement)
            } catch let error as TokenError {
                guard request.hint != nil, let dimension = error.limit?.dimension,
                    Self.reservable.contains(dimension), !reserved.contains(dimension),
                    request.realm.rateLimits[policy]?[dimension]?.part(.reserve) != nil
                else { throw error }
                reserved.insert(dimension)
            }
        }
    }

    /// Takes the permits of a request before something that costs is done for it, such as a call to an operator. The
    /// statement that records the request takes none then.
    /// - Throws: `rate_limited`, or what the database threw.
    func takePermits(of request: SignInRequest, _ policy: RateLimit.Policy) async throws {
        try await limiter.count(policy, Self.subjects(of: request), realm: request.realm)
    }

    /// The broad limits, which strangers cannot use up for known devices.
    private static let reservable: Set<RateLimit.Dimension> = [.client, .app, .prefix, .country]

    /// Always in the same order, so that two requests never deadlock over permits.
    private static func subjects(
        of request: SignInRequest, _ mayBeUnknown: Bool = false, by account: UUIDValue? = nil,
        fromReserve reserved: Set<RateLimit.Dimension> = []
    ) -> [RateLimiter.Subject] {
        var subjects: [RateLimiter.Subject] = []
        if request.hint == nil {
            subjects.append(.init(.target, "\(request.address.key)|\(request.source)"))
            subjects.append(.init(.targetTotal, request.address.key))
        }
        subjects.append(.init(.source, request.source))
        if mayBeUnknown { subjects.append(.init(.registrations, request.source)) }
        func add(_ dimension: RateLimit.Dimension, _ value: String, else part: RateLimit.Part) {
            subjects.append(.init(dimension, value, part: reserved.contains(dimension) ? .reserve : part))
        }
        if let client = request.client { add(.client, client.clientID, else: .open) }
        if let app = request.realm.app { add(.app, app.slug, else: .open) }
        if case .phone(let number, _) = request.address {
            add(.prefix, String(number.text.dropLast(4)), else: .whole)
            add(.country, number.region, else: .whole)
            subjects.append(
                .init(.spend, "all", part: .whole, amount: request.realm.phones?.cost(of: number.text) ?? 1))
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
}
