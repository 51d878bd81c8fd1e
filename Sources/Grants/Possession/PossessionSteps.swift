import Crypto
import Encoding
public import Persistence

/// Why a step of the app is refused.
public enum PossessionRefusal: Error, Sendable, Equatable {
    case wrongKey
    case stepNotAllowed
    case transactionOver(state: PossessionState)
    case channelNotAvailable
    /// No provider sends messages of this realm.
    case channelUnavailable
    case phoneNumberNeeded
    case phoneNumberInvalid
    case phoneChangeNotAllowed
    case sendLimit
    case resendTooSoon(seconds: Int)
    case otpInvalid(triesLeft: Int)
    case possessionFailed
    case redirectUnknown
    /// The token names no transaction that there is.
    case tokenUnknown
}

/// What apps do with a transaction (docs/wire.md). Each step first uses the DPoP proof up and checks that its key is
/// the one that the transaction is pinned to; the statement of the step decides everything again. Steps that need
/// nothing of the transaction before do both in one statement.
public struct PossessionSteps: Sendable {
    private let store: PossessionStore
    private let signals: PossessionSignals
    private let limiter: RateLimiter
    private let turns: Turns
    private let keyring: Keyring
    private let testCodes: TestNumberCodes
    private let wakeDelivery: @Sendable () -> Void

    /// - Parameters:
    ///   - turns: messages of one realm, and codes for one transaction, wait in memory and not on a connection each.
    ///   - testCodes: the codes of test numbers.
    ///   - wakeDelivery: called when a message was queued.
    public init(
        store: PossessionStore, signals: PossessionSignals, limiter: RateLimiter, turns: Turns, keyring: Keyring,
        testCodes: TestNumberCodes, wakeDelivery: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.signals = signals
        self.limiter = limiter
        self.turns = turns
        self.keyring = keyring
        self.testCodes = testCodes
        self.wakeDelivery = wakeDelivery
    }

    /// An app that was admitted.
    public struct Entry: Sendable {
        /// The transaction as it stood.
        public let facts: PossessionFacts
        let proof: DeviceProof
        /// The tenant.
        let realm: Realm
    }

    /// Uses the proof up and checks its key. - Parameter phone: a number that the app names.
    public func enter(
        _ authID: UUIDValue, proof: DeviceProof, phone: PhoneNumber? = nil, realm: Realm
    ) async throws -> Entry {
        let said = try await store.enter(realm: realm.id, authID: authID, phone: phone?.text, proof: proof.use)
        switch said.outcome {
        case .entered: return Entry(facts: try said.facts, proof: proof, realm: realm)
        case .wrongKey: throw PossessionRefusal.wrongKey
        case .unknown: throw PossessionRefusal.tokenUnknown
        }
    }

    /// Opens the transaction: pins the app's key.
    /// - Parameters:
    ///   - deviceID: the key that the app believes to have.
    ///   - operatorToken: of the phone's operator.
    public func open(
        _ entry: Entry, deviceID: UUIDValue?, operatorToken: String?, source: String
    ) async throws -> PossessionFacts {
        let facts = entry.facts
        var risk: PossessionRisk?
        var isVerified = false
        if facts.state == .open, !facts.isOpened {
            risk = await signals.risk(of: facts.phone, facts, realm: entry.realm)
            let isStopped = risk?.stops ?? false
            if let operatorToken, let phone = facts.phone, facts.kind == .mobile, !isStopped, !facts.knowsKey {
                isVerified = await signals.verifies(phone, operatorToken, realm: entry.realm)
            }
        }
        let said = try await store.open(
            realm: entry.realm.id, id: facts.id, key: entry.proof.thumbprint, publicKey: entry.proof.publicKey,
            deviceID: deviceID, source: source, risk: risk, isVerified: isVerified)
        switch said.outcome {
        case .opened: return try said.facts
        case .wrongKey: throw PossessionRefusal.wrongKey
        }
    }

    /// What a message led to.
    public struct Sent: Sendable {
        /// What the database knows of the transaction.
        public let facts: PossessionFacts
        /// E.164.
        public let phone: String
        /// What the message contains.
        public let channel: PossessionChannel
        /// The digits that a desktop shows.
        public let matchNumber: String?
    }

    /// The number that an app names for a message.
    public enum NamedNumber: Sendable {
        case named(PhoneNumber)
        /// None: the present one.
        case present
        /// What it named cannot be used.
        case invalid

        /// What an app sends. - Parameter typed: empty or `nil`: none.
        public init(_ typed: String?, realm: Realm) {
            guard let typed, !typed.isEmpty else {
                self = .present
                return
            }
            self = realm.possessionNumber(typed).map(NamedNumber.named) ?? .invalid
        }

        /// The number, if it is one.
        public var number: PhoneNumber? {
            if case .named(let number) = self { number } else { nil }
        }
    }

    /// Sends a code or a link.
    /// - Parameters:
    ///   - channel: a ``PossessionChannel``; any other text is refused.
    ///   - named: as ``enter(_:proof:phone:realm:)`` was told.
    public func send(
        _ entry: Entry, channel: String, to named: NamedNumber, source: String, locale: String?
    ) async throws -> Sent {
        let (facts, realm) = (entry.facts, entry.realm)
        guard facts.kind != .none else { throw PossessionRefusal.stepNotAllowed }
        if facts.sendRefusal == .step { throw Self.outOfStep(facts) }
        guard let channel = PossessionChannel(rawValue: channel), facts.channels.contains(channel) else {
            throw PossessionRefusal.channelNotAvailable
        }
        if case .invalid = named { throw PossessionRefusal.phoneNumberInvalid }
        guard let number = named.number ?? facts.phone.flatMap(PhoneNumber.init(e164:)) else {
            throw PossessionRefusal.phoneNumberNeeded
        }
        if facts.sendRefusal == .otherNumber { throw PossessionRefusal.phoneChangeNotAllowed }
        guard facts.isTest || realm.channels.contains(.sms) else { throw PossessionRefusal.channelUnavailable }
        let request = Self.request(number, facts, realm: realm, source: source)
        // The statement refuses these sends before it counts anything: no permit is taken and no operator is asked.
        let skipsProviders = facts.isTest || facts.sendRefusal != nil
        // Operators may bill each call, so the permits of the message are taken before it and not by the statement.
        let hasPermits = !skipsProviders && signals.areAsked(about: number.text, facts, realm: realm)
        if hasPermits { try await RequestAdmission(limiter).takePermits(of: request, .phoneOTP) }
        let risk = skipsProviders ? nil : await signals.risk(of: number.text, facts, realm: realm)
        let isStopped = risk?.stops ?? false
        let swapped = skipsProviders || isStopped ? nil : await signals.swap(of: number.text, realm: realm)
        let code =
            switch channel {
            case .otp:
                PossessionCode(
                    codeTo: number.text, of: facts.id, in: facts.smsMessage, realm: realm, keyring: keyring)
            case .link: PossessionCode(linkAskingNumber: facts.asksNumber, in: facts.smsMessage, realm: realm)
            }
        let message = PossessionStore.Message(
            realm: realm.id, id: facts.id, key: entry.proof.thumbprint, channel: channel, phone: number.text,
            region: number.region, salt: code.salt, keyed: code.keyed, codeKey: code.codeKey, linkHash: code.linkHash,
            match: code.match, risk: risk, swapped: swapped,
            mail: try code.payload.sealed(under: keyring, realm: realm.id), template: code.payload.template,
            app: realm.app?.slug, locale: locale)
        let said = try await admitting(request, isCounted: facts.isTest || hasPermits) { permits in
            try await turns.run("possession|\(realm.id)") { try await store.send(message, permits: permits) }
        }
        let after = try said.facts
        switch said.outcome {
        case .sent:
            wakeDelivery()
            return Sent(facts: after, phone: number.text, channel: channel, matchNumber: code.match)
        case .settled: return Sent(facts: after, phone: number.text, channel: channel, matchNumber: nil)
        case .failed: throw PossessionRefusal.possessionFailed
        case .refused(.step): throw Self.outOfStep(after)
        case .refused(.otherNumber), .refused(.numberLimit): throw PossessionRefusal.phoneChangeNotAllowed
        case .refused(.sendLimit): throw PossessionRefusal.sendLimit
        case .refused(.tooSoon): throw PossessionRefusal.resendTooSoon(seconds: Int(after.cooldown.rounded(.up)))
        }
    }

    /// Tries a code.
    public func check(_ entry: Entry, code: TypedCode) async throws -> PossessionFacts {
        let phone = entry.facts.phone ?? ""
        let testKeyed = entry.facts.isTest ? try await testCodes.candidates(code, entry.facts, entry.realm) : []
        let said = try await turns.run("possession|\(entry.facts.id)") {
            try await store.check(
                realm: entry.realm.id, id: entry.facts.id, key: entry.proof.thumbprint,
                keyed: keyring.keys.map { PossessionCode.keyed(code, entry.facts.id, phone, entry.realm, $0) },
                testKeyed: testKeyed)
        }
        let facts = try said.facts
        switch said.outcome {
        case .passed: return facts
        case .wrong: throw PossessionRefusal.otpInvalid(triesLeft: facts.triesLeft)
        case .failed: throw PossessionRefusal.possessionFailed
        case .step: throw Self.outOfStep(facts)
        }
    }

    /// Uses the proof up and brings back what the link gave. - Parameter returnCode: `pc`.
    public func finish(
        _ authID: UUIDValue, proof: DeviceProof, returnCode: String, realm: Realm
    ) async throws -> PossessionFacts {
        let said = try await store.finish(
            realm: realm.id, authID: authID, returnHash: PossessionLink.hash(returnCode), proof: proof.use)
        switch said.outcome {
        case .passed: return try said.facts
        case .wrongKey: throw PossessionRefusal.wrongKey
        case .gone: throw PossessionRefusal.tokenUnknown
        case .unknown: throw PossessionRefusal.redirectUnknown
        }
    }

    /// Uses the proof up and gives up.
    public func cancel(_ authID: UUIDValue, proof: DeviceProof, realm: Realm) async throws {
        let said = try await store.cancel(realm: realm.id, authID: authID, proof: proof.use)
        switch said.outcome {
        case .cancelled: return
        case .step: throw PossessionRefusal.stepNotAllowed
        case .over: throw PossessionRefusal.transactionOver(state: try said.facts.state)
        case .wrongKey: throw PossessionRefusal.wrongKey
        case .gone: throw PossessionRefusal.tokenUnknown
        }
    }

    /// The state after a wait.
    public func state(of entry: Entry) async throws(StoreError) -> PossessionState {
        try await store.state(realm: entry.realm.id, id: entry.facts.id) ?? .failed
    }

    /// What an answer to the page of a link led to.
    public func answer(
        _ token: String, denies: Bool, number: String?, realm: Realm
    ) async throws(StoreError) -> (outcome: PossessionStore.LinkAnswer.Outcome, redirect: String?) {
        let returnCode = Base64.urlEncode(randomBytes(16))
        let answer = try await store.answerLink(
            realm: realm.id, linkHash: PossessionLink.hash(token), denies: denies, number: number,
            returnHash: PossessionLink.hash(returnCode))
        guard let target = answer.target, let authID = answer.authID, answer.outcome != .numberDue else {
            return (answer.outcome, nil)
        }
        let passed = answer.outcome == .passed
        let code = answer.outcome == .linked ? "&pc=\(returnCode)" : ""
        return (
            answer.outcome, "\(target)\(target.contains("?") ? "&" : "?")asc=\(passed)&authId=\(authID)\(code)"
        )
    }

    /// A step that the transaction does not allow now.
    private static func outOfStep(_ facts: PossessionFacts) -> PossessionRefusal {
        facts.state.isOver ? .transactionOver(state: facts.state) : .stepNotAllowed
    }

    /// As every message to a phone is counted.
    private static func request(
        _ number: PhoneNumber, _ facts: PossessionFacts, realm: Realm, source: String
    ) -> SignInRequest {
        let backend = facts.clientID.flatMap { realm.clients[$0] }
        return SignInRequest(
            realm: realm, id: facts.id.bytes, resendOf: nil, address: .phone(number, .sms), firstName: nil,
            lastName: nil, client: backend, backend: backend, source: source, hint: nil, locale: nil)
    }

    /// Under the limits of every message to a phone, unless it is counted already, or not at all.
    private func admitting(
        _ request: SignInRequest, isCounted: Bool,
        _ statement: (PermitRequest) async throws -> (PossessionStore.Reply<PossessionStore.Sent>?, PermitVerdict)
    ) async throws -> PossessionStore.Reply<PossessionStore.Sent> {
        guard isCounted else { return try await RequestAdmission(limiter).admit(request, .phoneOTP, statement) }
        guard let said = try await statement(PermitRequest()).0 else { throw TokenError.unavailable("permits") }
        return said
    }
}
