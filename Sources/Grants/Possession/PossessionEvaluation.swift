public import Persistence

/// What decided a transaction, as its backend is told.
public struct PossessionEvaluation: Sendable, Equatable {
    /// What one check found.
    public struct Verdict: Sendable, Equatable {
        /// Whether it passed.
        public let isPassed: Bool
        /// Why, in the order of the events.
        public let reasons: [PossessionReason]
    }

    /// Whether the number was proven; `nil` while that is open.
    public let authentication: Verdict?
    /// What the risk provider said; `nil`: it said nothing usable.
    public let risk: Verdict?
}

extension PossessionFacts {
    /// What decided; `nil` while nothing has.
    public var evaluation: PossessionEvaluation? {
        let authentication: PossessionEvaluation.Verdict? =
            switch state {
            case .passed, .redeemed: .init(isPassed: true, reasons: reasons)
            case .failed: .init(isPassed: false, reasons: reasons)
            case .required: reasons.isEmpty ? nil : .init(isPassed: false, reasons: reasons)
            case .open, .sent, .linked: nil
            }
        let risk: PossessionEvaluation.Verdict? =
            switch risk {
            case .allow: .init(isPassed: true, reasons: [])
            case .deny: .init(isPassed: false, reasons: [.riskRefused])
            case .unknown, .unavailable, nil: nil
            }
        guard authentication != nil || risk != nil else { return nil }
        return PossessionEvaluation(authentication: authentication, risk: risk)
    }

    /// What the app may choose to be sent.
    public var channels: [PossessionChannel] {
        switch kind {
        case .mobile: target == nil ? [.otp] : [.otp, .link]
        case .desktop: [.link]
        case .none: []
        }
    }

    /// Whether the page of a link asks for the two digits that the desktop shows.
    var asksNumber: Bool { kind == .desktop && linkMatch != false }
}

extension PossessionReason {
    /// As backends are told.
    public var text: String {
        switch self {
        case .incomplete: "Phone possession incomplete."
        case .otherNumber: "Phone number doesn't match Prove Key. Rebind required."
        case .riskRefused: "The risk provider refused."
        case .providerSilent: "The risk provider did not answer."
        case .simChanged: "The SIM was changed lately."
        case .withoutMatch: "Passed without number match."
        case .noTriesLeft: "No tries are left for this code."
        case .noMessagesLeft: "No more messages can be sent."
        case .wrongMatch: "The number did not match."
        }
    }
}
