/// What is known of a transaction, as `postern.possession_facts` returns it.
public struct PossessionFacts: Sendable {
    /// The transaction as the backend names it.
    public let id: UUIDValue
    /// The transaction as the app and URLs name it.
    public let authID: UUIDValue
    /// Where its app is.
    public let kind: PossessionKind
    /// How far it is.
    public let state: PossessionState
    /// What decided it; empty while nothing has.
    public let reasons: [PossessionReason]
    /// E.164.
    public let phone: String?
    /// `client_id` of the backend; `nil`: the client is gone.
    public let clientID: String?
    /// Whether the app has opened it.
    public let isOpened: Bool
    /// Seconds.
    public let expiresIn: Double
    /// Messages that may still be sent.
    public let sendsLeft: Int
    /// Seconds until the next message may be sent.
    public let cooldown: Double
    /// Wrong codes that may still be tried.
    public let triesLeft: Int
    /// Why a message to the number would be refused now; `nil`: it would be sent.
    public let sendRefusal: PossessionSendRefusal?
    /// Whether a link for a desktop asks for the two digits that the desktop shows; `nil`: the client is gone.
    public let linkMatch: Bool?
    /// Whether the number is a test number, which nothing is sent to.
    public let isTest: Bool
    /// The fixed code of a test number, while no server has keyed it.
    public let testCode: String?
    /// The data key of the fixed code of a test number, once a server has keyed it.
    public let testKey: SealedDataKey?
    /// Whether the asking key is bound to a number and decides by itself.
    public let knowsKey: Bool
    /// The asking key as backends name it.
    public let deviceID: UUIDValue?
    /// The number as backends name it; only of a transaction that has passed.
    public let proveID: UUIDValue?
    /// Which calls may ask for it.
    public let family: PossessionFamily
    /// The URL that a link leads to.
    public let target: String?
    /// Whether the backend wants the risk provider to be asked.
    public let checksReputation: Bool
    /// The text of the message that the backend wants.
    public let smsMessage: String?
    /// `clientRequestId` of the backend, given back as it is.
    public let requestID: String?
    /// `clientHumanId` of the backend, given back as it is.
    public let humanID: String?
    /// The person's network address, as the backend gave it; for the risk provider.
    public let ip: String?
    /// The person's mail address, sealed; for the risk provider.
    public let email: String?
    /// What the risk provider said; `nil`: it was not asked.
    public let risk: PossessionRisk?

    static func columns(_ row: inout RecordReader) throws(StoreError) -> PossessionFacts {
        try PossessionFacts(&row)
    }

    private init(_ row: inout RecordReader) throws(StoreError) {
        id = try row("id")
        authID = try row("auth_id")
        kind = try row("kind")
        state = try row("state")
        reasons = try row("reasons")
        phone = try row("phone")
        clientID = try row("client_id")
        isOpened = try row("is_opened")
        expiresIn = try row("expires_in")
        sendsLeft = try row("sends_left")
        cooldown = try row("cooldown")
        triesLeft = try row("tries_left")
        sendRefusal = try row("send_refusal")
        linkMatch = try row("link_match")
        isTest = try row("is_test")
        testCode = try row("test_code")
        let (key, sealed): (UUIDValue?, [UInt8]?) = try (row("test_key"), row("test_key_sealed"))
        testKey = key.flatMap { key in sealed.map { SealedDataKey(id: key, purpose: .testCode, sealed: $0) } }
        knowsKey = try row("knows_key")
        deviceID = try row("device_id")
        proveID = try row("prove_id")
        family = try row("family")
        target = try row("target")
        checksReputation = try row("check_reputation")
        smsMessage = try row("sms_message")
        requestID = try row("request_id")
        humanID = try row("human_id")
        ip = try row("ip")
        email = try row("email")
        risk = try row("risk")
    }
}

/// What a backend gives when it starts; stored as it is, and given back.
public struct PossessionDetail: Sendable {
    /// Which calls may ask for it.
    public var family: PossessionFamily
    /// Where the page of a link leads.
    public var target: String?
    /// Three tries at the code; `nil`: one.
    public var retries: Bool?
    /// A bound key proves nothing; `nil`: it does.
    public var rebind: Bool?
    /// The risk provider is to be asked; `nil`: it is not.
    public var checkReputation: Bool?
    /// The key that the backend expects.
    public var deviceID: UUIDValue?
    /// The text of the message, with a run of `#`.
    public var smsMessage: String?
    /// Text of the backend, given back.
    public var requestID: String?
    /// Text of the backend, given back.
    public var humanID: String?
    /// Text of the backend.
    public var customerID: String?
    /// The person's address, for audit and risk.
    public var ip: String?
    /// The person's mail address, for risk; sealed.
    public var email: String?

    /// Nothing but whose call it was.
    public init(family: PossessionFamily) {
        self.family = family
    }

    static let argument = Argument.row(
        "detail", as: "possession_detail",
        [
            "family", "target", "retries", "rebind", "check_reputation", "device_id", "sms_message", "request_id",
            "human_id", "customer_id", "ip", "email",
        ])

    var arguments: Arguments {
        [
            "family": family, "target": target, "retries": retries, "rebind": rebind,
            "check_reputation": checkReputation, "device_id": deviceID, "sms_message": smsMessage,
            "request_id": requestID, "human_id": humanID, "customer_id": customerID, "ip": ip, "email": email,
        ]
    }
}
