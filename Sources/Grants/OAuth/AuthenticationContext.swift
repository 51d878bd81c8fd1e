/// How strong a sign-in was, as one value: `acr` (OpenID Connect Core §2). The one table of it is in
/// docs/decisions/0039; `postern.acr_level` holds the same.
public enum AuthenticationContext: String, Sendable, CaseIterable, Comparable {
    /// One factor: a code, a link.
    case oneFactor = "urn:postern:acr:1"
    /// One factor, and TOTP or a recovery code.
    case twoFactors = "urn:postern:acr:2"
    /// A passkey (OpenID Connect EAP ACR Values 1.0). `phrh` is never said: a passkey that is not backed up may still
    /// be in software, and no attestation is asked for.
    case phishingResistant = "phr"

    /// The highest one that a session with these authentication methods (RFC 8176) meets.
    public init(amr: [String]) {
        self =
            amr.contains { $0 == "hwk" || $0 == "swk" }
            ? .phishingResistant : amr.contains("mfa") ? .twoFactors : .oneFactor
    }

    /// 1 to 3. A session meets its own level and every lower one.
    public var level: Int {
        switch self {
        case .oneFactor: 1
        case .twoFactors: 2
        case .phishingResistant: 3
        }
    }

    public static func < (one: AuthenticationContext, other: AuthenticationContext) -> Bool { one.level < other.level }
}

/// `acr_values` and `max_age` of a token request. To meet one of the values is enough.
public struct RequestedContexts: Sendable, Equatable {
    /// In the order of the request, each once; empty: nothing was asked for.
    public let values: [AuthenticationContext]

    /// Nothing was asked for.
    public static let none = RequestedContexts(values: [], maximumAge: nil)
    /// The greatest age of the sign-in, in seconds; `nil`: any.
    public let maximumAge: Int?

    private init(values: [AuthenticationContext], maximumAge: Int?) {
        self.values = values
        self.maximumAge = maximumAge
    }

    /// Keeps what a grant can reach. Unknown values cannot be met.
    /// - Parameters:
    ///   - text: the parameter; without a value it counts as absent.
    ///   - highest: the highest that the grant can reach; `nil`: it ignores the parameter.
    ///   - age: `max_age`; without a value it counts as absent.
    /// - Throws: `invalid_request` for a `max_age` that is no whole number of seconds;
    ///   `unmet_authentication_requirements` when no value is left.
    public init(
        _ text: String?, upTo highest: AuthenticationContext?, maximumAge age: String? = nil
    ) throws(TokenError) {
        maximumAge = try age.map { age throws(TokenError) in
            guard age.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(age) else {
                throw TokenError(.invalidRequest, "The parameter max_age is not a number of seconds.")
            }
            return seconds
        }
        let asked = (text ?? "").blankSeparated
        guard let highest, !asked.isEmpty else {
            values = []
            return
        }
        var reachable: [AuthenticationContext] = []
        for value in asked {
            guard let known = AuthenticationContext(rawValue: value), known <= highest,
                !reachable.contains(known)
            else { continue }
            reachable.append(known)
        }
        guard !reachable.isEmpty else { throw .unmetAuthenticationRequirements("no value of acr_values is in reach") }
        values = reachable
    }

    /// The `acr` of an answer: the first value that a session with these authentication methods meets; without values
    /// the highest that it meets. `nil`: it meets none of them.
    public func met(by amr: [String]) -> AuthenticationContext? {
        let proven = AuthenticationContext(amr: amr)
        return values.isEmpty ? proven : values.first { $0 <= proven }
    }

    /// The least that will do; `nil`: anything.
    public var least: AuthenticationContext? { values.min() }
}
