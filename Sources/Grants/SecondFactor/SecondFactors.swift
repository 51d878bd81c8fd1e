public import Persistence

/// TOTP enrolment and removal for native apps, without HTTP.
public struct SecondFactors: Sendable {
    private let store: SecondFactorStore
    private let keyring: Keyring

    /// Creates the service.
    public init(store: SecondFactorStore, keyring: Keyring) {
        self.store = store
        self.keyring = keyring
    }

    /// What an authenticator app needs, and the handle to come back with.
    public struct Begun: Sendable {
        /// Sealed: the seed, the session, and until when.
        public let ceremonyID: String
        /// The seed in Base32.
        public let secret: String
        /// `otpauth://totp/…`.
        public let uri: String
    }

    /// Begins an enrolment for the user of a live session. Writes nothing: what the account has stays until the new
    /// seed is proven.
    public func begin(realm: Realm, verified: VerifiedAccessToken) throws(TokenError) -> Begun {
        let ceremony = TOTPCeremony(
            client: verified.client.key, session: verified.token.owner,
            expiresAt: Int(verified.session.now) + realm.policy.ceremonyLifetime)
        return Begun(
            ceremonyID: try ceremony.text(realm: realm.id, keyring: keyring), secret: ceremony.seed.base32,
            uri: ceremony.seed.uri(
                issuer: realm.displayName, account: verified.session.email ?? verified.session.user.description))
    }

    /// Why a second factor was not enrolled or removed.
    public enum Failure: Error, Equatable, Sendable {
        /// The ceremony is unknown, spent, expired or belongs to another session.
        case session
        /// The code is not of the secret that was handed out.
        case code
        /// The session neither proved nor enrolled the second factor the account has.
        case stepUp
        /// The session ended meanwhile.
        case signedOut
        /// There is nothing to remove.
        case none
    }

    /// Completes an enrolment with a code of the new secret.
    /// - Returns: the recovery codes. They cannot be shown again.
    public func enrol(
        ceremonyID: String, code: TypedCode, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws -> [String] {
        guard let ceremony = TOTPCeremony(ceremonyID, realm: realm.id, keyring: keyring),
            ceremony.client == verified.client.key, ceremony.session == verified.token.owner,
            Double(ceremony.expiresAt) > verified.session.now
        else { throw Failure.session }
        guard
            let step = TOTP.match(code, seed: ceremony.seed.bytes, now: verified.session.now, after: nil)
        else { throw Failure.code }
        let id = UUIDValue.random()
        let codes = (0..<RecoveryCode.count).map { _ in RecoveryCode.random() }
        let seedKey = try await store.dataKeys.current(.totpSeed, realm: realm.id, keyring: keyring)
        let recoveryKey = try await store.dataKeys.current(.recoveryCode, realm: realm.id, keyring: keyring)
        let keyed = codes.map {
            recoveryKey.id.bytes + RecoveryCode.keyed(TypedCode($0), realm: realm.id, factor: id, under: recoveryKey)
        }
        switch try await store.enrol(
            realm: realm.id, session: ceremony.session, ceremony: ceremony.id, expiresAt: Double(ceremony.expiresAt),
            factor: id, sealedSeed: try ceremony.seed.sealed(under: seedKey, realm: realm.id, factor: id), step: step,
            recoveryCodes: keyed, source: source)
        {
        case .enrolled: return codes
        case .ceremony: throw Failure.session
        case .stepUp: throw Failure.stepUp
        case .signedOut: throw Failure.signedOut
        }
    }

    /// Removes the second factor of the session's user, recovery codes included.
    public func remove(realm: Realm, verified: VerifiedAccessToken, source: String) async throws {
        switch try await store.remove(realm: realm.id, session: verified.token.owner, source: source) {
        case .removed: return
        case .none: throw Failure.none
        case .stepUp: throw Failure.stepUp
        case .signedOut: throw Failure.signedOut
        }
    }
}
