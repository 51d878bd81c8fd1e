public import Persistence
import WebAuthnVerify

/// `urn:cocoar:passkey`: sign-in by a WebAuthn assertion. Two round trips: spend and fetch, then record.
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
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let realm = request.realm
        let client = request.client
        let signIn = try await NewSignIn(request, issuer: issuer)
        guard let ceremony = PasskeyCeremony(request.form["ceremony_id"] ?? "", realm: realm.id, keyring: keyring),
            ceremony.kind == .login, ceremony.client == client.key, ceremony.rpID == realm.rpID(for: client)
        else {
            try await limiter.count(.token, request.subjects, realm: realm)
            throw Self.refused("ceremony")
        }
        let response = try? AuthenticationCeremony.response(parsing: Array((request.form["assertion"] ?? "").utf8).span)

        let credential = try await spend(ceremony, request, credentialID: response?.id ?? [])
        guard let response else { throw Self.refused("malformed assertion") }
        let verified = try verify(response, credential, ceremony, realm: realm, client: client)

        // RFC 8176: a key bound to the device, or one that is synchronised; user presence and verification were both
        // checked.
        let amr = [verified.flags.contains(.backupEligible) ? "swk" : "hwk", "user", "mfa"]
        guard let credential else { throw Self.refused("unknown credential") }
        let redemption = PasskeyStore.Redemption(
            realm: realm.id, client: client.key, permission: grantType.permission, passkey: credential.passkey,
            signCount: Self.presentedSignCount(verified, response), backupState: verified.backupState,
            session: signIn.record(amr: amr))
        let signedIn = try await signIn.decide(sessions: sessions, refused: Self.refused) {
            try await passkeys.redeem(redemption)
        }
        return try signIn.respond(signedIn, amr: amr)
    }

    private func spend(
        _ ceremony: PasskeyCeremony, _ request: TokenRequest, credentialID: [UInt8]
    ) async throws -> PasskeyStore.StoredCredential? {
        let realm = request.realm
        let start = try await limiter.admitting(.token, request.subjects, realm: realm) { permits in
            let (start, verdict) = try await passkeys.beginAssertion(
                realm: realm.id, ceremony: ceremony.id, expiresAt: Double(ceremony.expiresAt), rpID: ceremony.rpID,
                credentialID: credentialID, permits: permits)
            return (start.unlessLimited, verdict)
        }
        guard case .spent(let credential) = start else { throw Self.refused("ceremony spent or expired") }
        return credential
    }

    /// An unknown credential is verified against a decoy key, so that it fails like a bad signature and takes as long.
    private func verify(
        _ response: AuthenticationResponseJSON, _ credential: PasskeyStore.StoredCredential?,
        _ ceremony: PasskeyCeremony,
        realm: Realm, client: Client
    ) throws(TokenError) -> VerifiedAuthentication {
        let record =
            credential.map {
                CredentialRecord(
                    id: response.id, publicKey: $0.publicKey, signCount: $0.signCount,
                    backupEligible: $0.backupEligible,
                    userHandle: $0.userHandle)
            }
            ?? .decoy(for: response)
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

    /// The counter as signed: the statement compares it with the stored one again, and audits it when it went back.
    private static func presentedSignCount(_ verified: VerifiedAuthentication, _ response: AuthenticationResponseJSON)
        -> UInt32
    {
        guard verified.signCountRegressed, response.authenticatorData.count >= 37 else { return verified.signCount }
        return response.authenticatorData[33..<37].bigEndianInteger(as: UInt32.self) ?? verified.signCount
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Passkey verification failed.", reason: reason)
    }
}

extension GrantType {
    /// Passkey.
    public static let passkey = GrantType(rawValue: "urn:cocoar:passkey")
}
