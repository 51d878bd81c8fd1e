import Encoding
public import Persistence
import Synchronization

/// Proofs of addresses without accounts, as pages make them (docs/decisions/0036): a code is sent to the address, or a
/// signed-in browser shares what its user has proven. No account is looked up for the address.
public final class AddressVerifications: Sendable {
    private let store: AddressVerificationStore
    private let dataKeys: DataKeyStore
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let wrongCodes: WrongCodes
    private let wakeDelivery: @Sendable () -> Void
    /// Of each realm. They never change.
    private let subjectKeys = Mutex<[UUIDValue: DataKey]>([:])

    /// - Parameters:
    ///   - codes: counts wrong codes of the realm.
    ///   - wakeDelivery: called when a message was queued.
    public init(
        store: AddressVerificationStore, dataKeys: DataKeyStore, codes: CodeStore, limiter: RateLimiter,
        keyring: Keyring,
        wakeDelivery: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.dataKeys = dataKeys
        self.limiter = limiter
        self.keyring = keyring
        self.wakeDelivery = wakeDelivery
        wrongCodes = WrongCodes(codes)
    }

    /// A browser that asks for a proof.
    public struct Browser: Sendable {
        let cookie: BrowserCookie
        let host: String

        /// - Parameters:
        ///   - cookie: the session cookie that it showed.
        ///   - host: the host that it asked.
        public init(cookie: BrowserCookie, host: String) {
            self.cookie = cookie
            self.host = host
        }

        func asked(by request: AuthorizationRequest) -> AddressVerificationStore.Browser {
            AddressVerificationStore.Browser(cookieHash: cookie.hash, host: host, maximumAge: request.maximumAge)
        }
    }

    /// What asking for a proof led to.
    public enum Begun: Sendable {
        /// The browser's user has proven the address lately, and may share it. Nothing was sent.
        case known
        /// A code is on its way, or was sent a moment ago (`isNew` false). The handle to present it with.
        case sent(authSession: String, isNew: Bool)
    }

    /// What a proof led to: the answer to the authorization request, and its code.
    public struct Proved: Sendable {
        /// ``PageOutcome/issued``, unless client, pages or pushed request were closed meanwhile.
        public let outcome: PageOutcome
        /// The code, if it was issued.
        public let code: AuthorizationCode
    }

    /// Sends a code, unless the browser's user has proven the address lately.
    /// - Parameters:
    ///   - authSession: a handle to send again for.
    ///   - browser: `nil`: a code is sent in any case.
    ///   - pageOrigin: of the page where the code is typed.
    /// - Throws: ``SignInRequests/SendLimit``, `rate_limited`, or what the database threw.
    public func begin(
        _ address: MessageAddress, for request: AuthorizationRequest, authSession: String?, browser: Browser?,
        locale: String?, pageOrigin: String, realm: Realm, source: String
    ) async throws -> Begun {
        let client = request.client
        let sent = AddressCode(
            to: address, authSession: authSession, client: client, locale: locale, pageOrigin: pageOrigin,
            realm: realm, source: source, keyring: keyring)
        let beginning = AddressVerificationStore.Beginning(
            sent.record,
            sealedAddress: try VerifiedAddress.sealed(
                address.text, realm: realm.id, client: client.key, keyring: keyring),
            salt: randomBytes(16), keyed: Self.keyed(TypedCode(sent.code), realm, client, address.key, keyring.newest),
            message: try sent.message(under: keyring))
        let begun = try await RequestAdmission(limiter).admit(
            sent.request, address.policy(or: .nativeOTP), mayBeUnknown: true
        ) { permits in
            try await store.begin(
                beginning, browser: browser?.asked(by: request), brake: .brake(of: realm), permits: permits)
        }
        switch begun {
        case .known: return .known
        case .sendLimit: throw SignInRequests.SendLimit()
        case .handle(let id, let isSent):
            if isSent { wakeDelivery() }
            return .sent(
                authSession: try sent.handle.with(id: id).text(realm: realm.id, keyring: keyring), isNew: isSent)
        }
    }

    /// Proves an address by the code that was sent there.
    /// - Throws: `invalid_grant` for a wrong code, `rate_limited`, or what the database threw.
    public func prove(
        code presented: TypedCode, authSession: String, for request: AuthorizationRequest, acr: String,
        in context: RequestContext
    ) async throws -> Proved {
        let realm = context.realm
        guard let handle = AuthSessionHandle(authSession, realm: realm.id, keyring: keyring),
            let id = UUIDValue(bytes: handle.id)
        else { throw Self.refused("handle") }
        let (code, proof) = try await proof(id, of: handle.addressKey, for: request, acr: acr, in: context)
        let proved = try await limiter.admitting(.token, context.subjects, realm: realm) { permits in
            try await store.prove(
                proof,
                keyed: keyring.keys.map { Self.keyed(presented, realm, request.client, handle.addressKey, $0) },
                amr: MessageAddress.amr(by: handle.channel), brake: .brake(of: realm), permits: permits)
        }
        switch proved {
        case .answered(let outcome): return Proved(outcome: outcome, code: code)
        case .refused(let reason, let wrong):
            wrongCodes.count(wrong, of: realm)
            throw Self.refused(reason)
        }
    }

    /// Shares an address that the browser's user has proven lately.
    /// - Returns: ``PageOutcome/login`` when there is no such session or proof any more.
    public func share(
        _ address: MessageAddress, for request: AuthorizationRequest, acr: String, browser: Browser,
        in context: RequestContext
    ) async throws -> Proved {
        let (code, proof) = try await proof(.random(), of: address.key, for: request, acr: acr, in: context)
        let outcome = try await store.share(
            proof,
            sealedAddress: try VerifiedAddress.sealed(
                address.text, realm: context.realm.id, client: request.client.key, keyring: keyring),
            browser: browser.asked(by: request))
        return Proved(outcome: outcome, code: code)
    }

    private func proof(
        _ id: UUIDValue, of addressKey: String, for request: AuthorizationRequest, acr: String,
        in context: RequestContext
    ) async throws -> (AuthorizationCode, AddressVerificationStore.Proof) {
        let code = AuthorizationCode(provesAddress: true)
        var wanted = request.codeRequest
        wanted.codeHash = code.hash
        let key = try await subjectKey(of: context.realm)
        let proof = AddressVerificationStore.Proof(
            realm: context.realm.id, client: request.client.key, id: id, addressKey: addressKey,
            subject: Self.subject(of: addressKey, at: request.client, under: key), acr: acr, request: wanted,
            source: context.source)
        return (code, proof)
    }

    /// `sub` of an address at a client: stable, and nothing by which two clients could find that they know one person.
    static func subject(of addressKey: String, at client: Client, under key: DataKey) -> UUIDValue {
        var bytes = Array(key.hmac([client.key.bytes, Array(addressKey.utf8)]).prefix(16))
        // The form of a random UUID (RFC 9562 §5.4): version 8 is that of test identities.
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return UUIDValue(bytes: bytes) ?? .random()
    }

    private func subjectKey(of realm: Realm) async throws -> DataKey {
        if let known = subjectKeys.withLock({ $0[realm.id] }) { return known }
        let key = try await dataKeys.current(.addressSubject, realm: realm.id, keyring: keyring)
        subjectKeys.withLock { $0[realm.id] = key }
        return key
    }

    /// A code of its own kind and client: one that signs in proves nothing here, nor the other way round.
    private static func keyed(
        _ code: TypedCode, _ realm: Realm, _ client: Client, _ key: String, _ line: ServerKey
    ) -> [UInt8] {
        line.hmac(
            .codePepper,
            [realm.id.bytes, client.key.bytes, Array(key.utf8), Array("address proof".utf8), Array(code.text.utf8)])
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired code.", reason: reason)
    }
}
