// The words of a proof of a phone number, as sql/schema/47_possession.sql has them. The tests compare both.

/// Where the app of a transaction is: on the phone, beside it, or on a device whose number the backend asserts.
public enum PossessionKind: String, Sendable, CaseIterable {
    case mobile, desktop, none
}

/// How far a transaction is (docs/decisions/0043). One that expired before it passed has failed.
public enum PossessionState: String, Sendable, CaseIterable {
    case open, sent, linked, required, passed, failed, redeemed

    /// Whether it has ended.
    public var isOver: Bool {
        switch self {
        case .passed, .failed, .redeemed: true
        case .open, .sent, .linked, .required: false
        }
    }

    /// Whether the number was proven.
    public var isPassed: Bool {
        switch self {
        case .passed, .redeemed: true
        case .open, .sent, .linked, .required, .failed: false
        }
    }

    /// Whether the app that waits has something to do, or nothing to wait for.
    public var endsWait: Bool {
        switch self {
        case .linked, .required, .passed, .failed, .redeemed: true
        case .open, .sent: false
        }
    }
}

/// Which calls of a backend may ask for a transaction.
public enum PossessionFamily: String, Sendable, CaseIterable {
    case unify, start
}

/// What a message to the number contains.
public enum PossessionChannel: String, Sendable, CaseIterable {
    case otp, link
}

/// What the risk provider answered.
public enum PossessionRisk: String, Sendable, CaseIterable {
    case allow, deny
    /// No usable answer, and the realm goes on without one.
    case unknown
    /// No usable answer, and the realm requires one.
    case unavailable

    /// Whether the transaction ends by it.
    public var stops: Bool {
        switch self {
        case .deny, .unavailable: true
        case .allow, .unknown: false
        }
    }
}

/// Why the provider of SIM changes stops a message.
public enum PossessionSIM: String, Sendable, CaseIterable {
    case swapped, unavailable
}

/// Why no message is sent.
public enum PossessionSendRefusal: String, Sendable, CaseIterable {
    /// The transaction is not open, or over.
    case step
    /// The app may not name another number than the backend did.
    case otherNumber = "no_change"
    /// Messages were sent to three numbers.
    case numberLimit = "phone_limit"
    case tooSoon = "too_soon"
    case sendLimit = "send_limit"
}

/// What decided a transaction, as backends are told.
public enum PossessionReason: String, Sendable, CaseIterable {
    case incomplete = "9100"
    case otherNumber = "9101"
    case riskRefused = "9200"
    case providerSilent = "9201"
    case simChanged = "9202"
    case withoutMatch = "9203"
    case noTriesLeft = "9210"
    case noMessagesLeft = "9211"
    case wrongMatch = "9212"
}

extension PossessionKind: ColumnValue, ArgumentValue {}
extension PossessionState: ColumnValue {}
extension PossessionFamily: ColumnValue, ArgumentValue {}
extension PossessionChannel: ArgumentValue {}
extension PossessionRisk: ColumnValue, ArgumentValue {}
extension PossessionSIM: ArgumentValue {}
extension PossessionSendRefusal: ColumnValue {}
extension PossessionReason: ColumnElement {}
