import Encoding
import FoundationEssentials
public import Persistence
import WebAuthnVerify

/// Passkey ceremonies and management for native apps, without HTTP.
public struct Passkeys: Sendable {
    private let store: PasskeyStore
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let clock: @Sendable () -> Double

    /// The algorithms offered, best first.
    private static let algorithms: [COSEAlgorithmIdentifier] = [.es256, .edDSA, .rs256]

    /// - Parameter clock: seconds since the epoch.
    public init(store: PasskeyStore, limiter: RateLimiter, keyring: Keyring, clock: @escaping @Sendable () -> Double) {
        self.store = store
        self.limiter = limiter
        self.keyring = keyring
        self.clock = clock
    }

    /// A ceremony as handed to the client: `{"ceremonyId":…,"options":{…}}`.
    public struct Options: Sendable {
        /// Names the ceremony.
        public let ceremonyID: String
        private let options: [UInt8]

        fileprivate init(ceremonyID: String, options: [UInt8]) {
            self.ceremonyID = ceremonyID
            self.options = options
        }

        /// The JSON body.
        public var json: [UInt8] {
            var object = JSONWriter(reserving: 1024)
            object.member("ceremonyId", ceremonyID)
            object.member("options", json: options)
            return object.finish()
        }
    }

    /// A ceremony with its options, for a page: the page's own state holds the ceremony, sealed with the rest.
    package struct Begun: Sendable {
        package let ceremony: PasskeyCeremony
        /// JSON.
        package let options: [UInt8]
    }

    /// The client that wants to begin a sign-in. - Throws: `unauthorized_client`, `invalid_request` for another App's.
    public func client(named clientID: String, realm: Realm) throws(TokenError) -> Client {
        guard let client = realm.clients[clientID], client.enabled, client.mayUse(.passkey) else {
            throw TokenError(.unauthorizedClient, "The client may not use this grant type.")
        }
        try realm.requireAdmission(of: client)
        return client
    }

    /// Begins a sign-in. Writes nothing but permits.
    /// - Parameter proof: of the key that the ceremony is bound to; it is used up.
    public func beginLogin(
        realm: Realm, client: Client, rpID: String, source: String, proof: ProofUse? = nil
    ) async throws -> Options {
        var subjects: [RateLimiter.Subject] = [.init(.source, source), .init(.client, client.clientID)]
        if let app = realm.app { subjects.append(.init(.app, app.slug)) }
        try await limiter.count(.passkeyBegin, subjects, realm: realm, spending: proof)
        let ceremony = PasskeyCeremony.login(
            client: client.key, rpID: rpID, expiresAt: expiry(realm), thumbprint: proof?.thumbprint)
        return try handed(Begun(ceremony: ceremony, options: Self.requestOptions(ceremony, realm)), realm)
    }

    private func handed(_ begun: Begun, _ realm: Realm) throws(TokenError) -> Options {
        Options(ceremonyID: try begun.ceremony.text(realm: realm.id, keyring: keyring), options: begun.options)
    }

    /// PublicKeyCredentialRequestOptionsJSON, WebAuthn L3 §5.1.10
    private static func requestOptions(_ ceremony: PasskeyCeremony, _ realm: Realm) -> [UInt8] {
        var options = JSONWriter(reserving: 256)
        options.member("challenge", Base64.urlEncode(ceremony.challenge))
        options.member("timeout", realm.policy.ceremonyLifetime * 1000)
        options.member("rpId", ceremony.rpID)
        options.member("allowCredentials", [String]())
        options.member("userVerification", "required")
        return options.finish()
    }

    /// Who enrols a passkey.
    public struct Owner: Sendable {
        let client: Client
        let session: UUIDValue
        let user: UUIDValue
        let pageOrigin: String?

        /// The user of an app.
        public init(_ verified: VerifiedAccessToken) {
            client = verified.client
            session = verified.token.owner
            user = verified.session.user
            pageOrigin = nil
        }

        /// The user of a page.
        /// - Parameters:
        ///   - client: that the sign-in is for.
        ///   - session: the browser session.
        public init(client: Client, session: UUIDValue, user: UUIDValue, pageOrigin: String) {
            self.client = client
            self.session = session
            self.user = user
            self.pageOrigin = pageOrigin
        }
    }

    /// A sign-in on a page. Nothing is counted: the page is shown to everybody, and the assertion counts.
    package func beginOnPage(realm: Realm, client: Client, rpID: String) -> Begun {
        let ceremony = PasskeyCeremony.login(
            client: client.key, rpID: rpID, expiresAt: expiry(realm), onPage: true)
        return Begun(ceremony: ceremony, options: Self.requestOptions(ceremony, realm))
    }

    /// Begins an enrolment for the user of a live session. - Returns: `nil` when the user is gone.
    public func beginEnrolment(realm: Realm, rpID: String, owner: Owner) async throws -> Options? {
        guard let begun = try await enrolment(realm: realm, rpID: rpID, owner: owner) else { return nil }
        return try handed(begun, realm)
    }

    /// The same on a page. - Returns: `nil` when the user is gone.
    package func enrolment(realm: Realm, rpID: String, owner: Owner) async throws(StoreError) -> Begun? {
        guard let user = try await store.enrolmentOptions(realm: realm.id, user: owner.user, rpID: rpID)
        else {
            return nil
        }
        let ceremony = PasskeyCeremony.enrolment(
            client: owner.client.key, session: owner.session, rpID: rpID, expiresAt: expiry(realm),
            onPage: owner.pageOrigin != nil)
        return Begun(ceremony: ceremony, options: Self.creationOptions(ceremony, user, realm))
    }

    /// PublicKeyCredentialCreationOptionsJSON, WebAuthn L3 §5.1.9
    private static func creationOptions(
        _ ceremony: PasskeyCeremony, _ user: PasskeyStore.EnrolmentOptions, _ realm: Realm
    ) -> [UInt8] {
        var rp = JSONWriter()
        rp.member("id", ceremony.rpID)
        rp.member("name", realm.displayName)
        var owner = JSONWriter()
        owner.member("id", Base64.urlEncode(user.userHandle))
        owner.member("name", user.email)
        owner.member("displayName", user.displayName)
        var selection = JSONWriter()
        selection.member("residentKey", "required")
        selection.member("requireResidentKey", true)
        selection.member("userVerification", "required")
        var options = JSONWriter(reserving: 1024)
        options.member("rp", json: rp.finish())
        options.member("user", json: owner.finish())
        options.member("challenge", Base64.urlEncode(ceremony.challenge))
        options.member(
            "pubKeyCredParams",
            json: list(algorithms.map { #"{"type":"public-key","alg":\#($0.rawValue)}"# }))
        options.member("timeout", realm.policy.ceremonyLifetime * 1000)
        options.member(
            "excludeCredentials",
            json: list(user.credentialIDs.map { #"{"type":"public-key","id":"\#(Base64.urlEncode($0))"}"# }))
        options.member("authenticatorSelection", json: selection.finish())
        options.member("attestation", "none")
        options.member("extensions", json: Array(#"{"credProps":true}"#.utf8))
        return options.finish()
    }

    private static func list(_ items: [String]) -> [UInt8] {
        Array("[\(items.joined(separator: ","))]".utf8)
    }

    /// Why an enrolment did not happen.
    public enum EnrolmentFailure: Error, Equatable, Sendable {
        /// The ceremony is unknown, spent, expired or belongs to another session.
        case session
        /// The registration did not verify or cannot be stored. The reason is for logs.
        case refused(String)
    }

    /// Completes an enrolment: spends the ceremony, verifies (WebAuthn L3 §7.1), stores, and queues the notice.
    /// - Parameter attestation: RegistrationResponseJSON.
    /// - Returns: the passkey's management id.
    public func enrol(
        ceremonyID: String, attestation: [UInt8], displayName: String?, realm: Realm, owner: Owner,
        source: String
    ) async throws -> UUIDValue {
        try await enrol(
            PasskeyCeremony(ceremonyID, realm: realm.id, keyring: keyring), attestation: attestation,
            realm: realm, owner: owner, source: source
        ) { _ in displayName }
    }

    /// The same with a ceremony that was opened; `nil`: none.
    /// - Parameter displayName: of a passkey of a model, whose name is `nil` where it is not known.
    package func enrol(
        _ ceremony: PasskeyCeremony?, attestation: [UInt8], realm: Realm, owner: Owner, source: String,
        displayName: (_ model: String?) -> String?
    ) async throws -> UUIDValue {
        let client = owner.client
        guard let ceremony, ceremony.kind == (owner.pageOrigin == nil ? .enrolment : .pageEnrolment),
            ceremony.client == client.key, ceremony.session == owner.session,
            ceremony.rpID == realm.rpID(for: client),
            try await store.spend(realm: realm.id, ceremony: ceremony.id, expiresAt: Double(ceremony.expiresAt))
        else { throw EnrolmentFailure.session }
        let registration: VerifiedRegistration
        do {
            let response = try RegistrationCeremony.response(parsing: attestation.span)
            registration = try await RegistrationCeremony(
                relyingParty: realm.relyingParty(
                    for: client, rpID: ceremony.rpID, pageOrigin: owner.pageOrigin), challenge: ceremony.challenge,
                pubKeyCredParams: Set(Self.algorithms)
            ).verify(response, at: Date(timeIntervalSince1970: clock()))
        } catch {
            throw EnrolmentFailure.refused("step \(error.step)")
        }
        let credential = registration.credential
        let aaguid = UUIDValue(bytes: credential.aaguid).flatMap { $0.bytes.allSatisfy { $0 == 0 } ? nil : $0 }
        // The mail does not quote the display name, because the holder of the token chooses it.
        let notice = try notice(.passkeyAdded(name: AuthenticatorNames.name(of: aaguid)), realm: realm)
        guard
            let id = try await store.add(
                realm: realm.id, session: owner.session, rpID: ceremony.rpID, credentialID: credential.id,
                publicKey: credential.publicKey, signCount: credential.signCount, aaguid: aaguid,
                backupEligible: credential.backupEligible, backupState: credential.backupState,
                uvInitialized: credential.uvInitialized,
                transports: credential.transports.filter { (1...32).contains($0.utf8.count) }.prefix(8).map { $0 },
                format: registration.format.rawValue, displayName: displayName(AuthenticatorNames.known(aaguid)),
                source: source, notice: notice)
        else { throw EnrolmentFailure.refused("registered already, too many, or signed out") }
        return id
    }

    /// The user's passkeys, newest first.
    public func list(realm: Realm, user: UUIDValue) async throws(StoreError) -> [PasskeyStore.Listed] {
        try await store.list(realm: realm.id, user: user)
    }

    /// Renames a passkey of the token's user. - Returns: the passkey, or `nil` if the user has no such passkey.
    public func rename(
        realm: Realm, verified: VerifiedAccessToken, id: UUIDValue, to name: String
    ) async throws(StoreError) -> PasskeyStore.Listed? {
        guard try await store.rename(realm: realm.id, session: verified.token.owner, id: id, to: name) else {
            return nil
        }
        return try await store.list(realm: realm.id, user: verified.session.user, id: id).first
    }

    /// Deletes a passkey of the session's user and queues the notice. - Returns: `true` exactly once.
    public func delete(realm: Realm, verified: VerifiedAccessToken, id: UUIDValue, source: String) async throws -> Bool
    {
        let user = verified.session.user
        guard let passkey = try await store.list(realm: realm.id, user: user, id: id).first else { return false }
        return try await store.delete(
            realm: realm.id, session: verified.token.owner, id: id, source: source,
            notice: try notice(.passkeyRemoved(name: AuthenticatorNames.name(of: passkey.aaguid)), realm: realm))
    }

    private func notice(_ content: MessagePayload.Content, realm: Realm) throws -> SealedMessage {
        try MessagePayload(originHost: realm.host, content: content)
            .sealed(under: keyring, realm: realm.id)
    }

    private func expiry(_ realm: Realm) -> Int {
        Int(clock()) + realm.policy.ceremonyLifetime
    }
}

extension RateLimit.Policy {
    /// `passkey/begin`.
    static let passkeyBegin = Self(rawValue: "passkey-begin")
}
