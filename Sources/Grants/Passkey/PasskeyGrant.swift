public import Persistence
import WebAuthnVerify

/// `urn:cocoar:passkey`: sign-in by a WebAuthn assertion (contract §4.3). Two round trips: spend and fetch, then record.
public struct PasskeyGrant: Grant {
    /// `urn:cocoar:passkey`.
    public let grantType = GrantType.passkey
    /// Gated by the realm's native-grants flag.
    public let isNative = true

    private let passkeys: PasskeyStore
    private let sessions: SessionStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter
    private let keyring: Keyring

    /// Creates the grant.
    public init(
        passkeys: PasskeyStore, sessions: SessionStore, issuer: TokenIssuer, limiter: RateLimiter, keyring: Keyring
    ) {
        self.passkeys = passkeys
        self.sessions = sessions
        self.issuer = issuer
        self.limiter = limiter
        self.keyring = keyring
    }

    /// `ceremony_id` and `assertion`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["ceremony_id"] != nil else { throw .missing("ceremony_id") }
        guard form["assertion"] != nil else { throw .missing("assertion") }
    }

    /// Spends the ceremony whatever comes of it, verifies (WebAuthn L3 §7.2), then records counter and session in one statement.
    public func redeem(_ request: TokenRequest) async throws(TokenError) -> TokenResponse {
        let realm = request.realm
        let client = request.client
        let signIn = try await NewSignIn(request, issuer: issuer)
        guard let ceremony = PasskeyCeremony(request.form["ceremony_id"] ?? "", realm: realm.id, keyring: keyring),
            ceremony.kind == .login, ceremony.client == client.key, ceremony.rpID == realm.rpID(for: client)
        else { throw Self.refused("ceremony") }
        let response = try? AuthenticationCeremony.response(parsing: Array((request.form["assertion"] ?? "").utf8).span)

        let claim = try limiter.claim(.token, [.init(.source, request.source)], realm: realm)
        let credential = try await spend(ceremony, claim, credentialID: response?.id ?? [], realm: realm)
        guard let response else { throw Self.refused("malformed assertion") }
        let verified = try verify(response, credential, ceremony, realm: realm, client: client)

        // RFC 8176: a key bound to the device, or one that is synchronised; user presence and verification were both checked.
        let amr = [verified.flags.contains(.backupEligible) ? "swk" : "hwk", "user", "mfa"]
        guard let credential else { throw Self.refused("unknown credential") }
        let redemption = PasskeyStore.Redemption(
            realm: realm.id, client: client.key, permission: grantType.permission, passkey: credential.passkey,
            signCount: verified.signCount, backupState: verified.backupState, session: signIn.record(amr: amr))
        return try signIn.respond(try await record(redemption, signIn), amr: amr)
    }

    private func spend(
        _ ceremony: PasskeyCeremony, _ claim: RateLimiter.Claim, credentialID: [UInt8], realm: Realm
    ) async throws(TokenError) -> PasskeyStore.StoredCredential? {
        do {
            let (start, verdict) = try await passkeys.beginAssertion(
                realm: realm.id, ceremony: ceremony.id, expiresAt: Double(ceremony.expiresAt), rpID: ceremony.rpID,
                credentialID: credentialID, permits: claim.permits)
            try limiter.settle(claim, verdict)
            switch start {
            case .spent(let credential): return credential
            case .refused: throw Self.refused("ceremony spent or expired")
            case .limited: throw TokenError.unavailable("limit without a verdict")
            }
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
    }

    /// An unknown credential is verified against a key nobody has, so that it fails like a bad signature and takes as long.
    private func verify(
        _ response: AuthenticationResponseJSON, _ credential: PasskeyStore.StoredCredential?, _ ceremony: PasskeyCeremony,
        realm: Realm, client: Client
    ) throws(TokenError) -> VerifiedAuthentication {
        let record =
            credential.map {
                CredentialRecord(
                    id: response.id, publicKey: $0.publicKey, signCount: $0.signCount, backupEligible: $0.backupEligible,
                    userHandle: $0.userHandle)
            }
            ?? CredentialRecord(
                id: response.id, publicKey: Self.nobodysKey, signCount: 0,
                backupEligible: Self.claimsBackupEligible(response), userHandle: response.userHandle)
        let verification = AuthenticationCeremony(
            relyingParty: realm.relyingParty(for: client, rpID: ceremony.rpID), challenge: ceremony.challenge,
            // A counter that went back is refused, and audited, by the statement that would store it.
            signCountPolicy: .report)
        do {
            return try verification.verify(response, credential: record)
        } catch {
            throw Self.refused(credential == nil ? "unknown credential" : "step \(error.step)")
        }
    }

    private func record(_ redemption: PasskeyStore.Redemption, _ signIn: NewSignIn) async throws(TokenError) -> SignedIn {
        do {
            switch try await passkeys.redeem(redemption) {
            case .signedIn(let user, let now, let expiresAt): return SignedIn(user: user, now: now, sessionExpiresAt: expiresAt)
            case .refused(let reason): throw Self.refused(reason)
            case .limited: throw TokenError.unavailable("limit without a verdict")
            }
        } catch let error as TokenError {
            throw error
        } catch StoreError.inDoubt {
            return try await sessions.resolve(signIn)
        } catch {
            throw .unavailable("\(error)")
        }
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Passkey verification failed.", reason: reason)
    }

    /// BE as the unsigned bytes claim it, so that the dummy verification gets as far as the signature.
    private static func claimsBackupEligible(_ response: AuthenticationResponseJSON) -> Bool {
        response.authenticatorData.count > 32 && response.authenticatorData[32] & 0x08 != 0
    }

    /// A P-256 COSE key made at start whose private half was thrown away.
    private static let nobodysKey = COSEKey.es256()
}

extension GrantType {
    /// Passkey.
    public static let passkey = GrantType(rawValue: "urn:cocoar:passkey")
}
