/// How a realm proves phone numbers for backends (`admin.set_possession`, `admin.put_provider`).
public struct PossessionPolicy: Sendable, Equatable {
    /// Whether it does.
    public let isEnabled: Bool
    /// Seconds in which a code is right.
    public let otpLifetime: Int
    /// Seconds in which a link can be answered.
    public let linkLifetime: Int
    /// Digits of a code, at least.
    public let otpDigits: Int
    /// Who is asked about a number.
    let providers: [Provider]

    /// An operator's endpoint.
    struct Provider: Sendable, Equatable, Decodable {
        let kind: String
        let url: String
        /// Whether nothing goes on without its answer.
        let required: Bool
    }

    /// Off, with the defaults.
    init() {
        (isEnabled, otpLifetime, linkLifetime, otpDigits, providers) = (false, 120, 300, 6, [])
    }
}

/// As `postern.possession_config` writes it.
struct PossessionPolicyRecord: Decodable {
    let enabled: Bool
    let otpLifetime: Int
    let linkLifetime: Int
    let otpDigits: Int
    let providers: [PossessionPolicy.Provider]
}

extension PossessionPolicy {
    init(_ record: PossessionPolicyRecord) {
        isEnabled = record.enabled
        otpLifetime = record.otpLifetime
        linkLifetime = record.linkLifetime
        otpDigits = record.otpDigits
        providers = record.providers
    }

    /// The endpoint of a kind; `nil`: no provider is asked.
    func provider(_ kind: String) -> Provider? { providers.first { $0.kind == kind } }
}
