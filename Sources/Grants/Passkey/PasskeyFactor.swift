public import Persistence
import WebAuthnVerify

/// `urn:cocoar:passkey`: a WebAuthn assertion. Two round trips: spend the ceremony and fetch the credential, then
/// record.
public struct PasskeyFactor: Factor {
    /// `urn:cocoar:passkey`.
    public let grantType = GrantType.passkey
    /// Bound to the origin, verified by the user.
    public let highestContext = AuthenticationContext.phishingResistant

    private let passkeys: PasskeyStore
    private let keyring: Keyring

    public init(passkeys: PasskeyStore, keyring: Keyring) {
        self.passkeys = passkeys
        self.keyring = keyring
    }

    /// An open ceremony of the client and what came of it; no response when it is malformed.
    public struct Presented: Sendable {
        let ceremony: PasskeyCeremony
        let response: AuthenticationResponseJSON?
    }

    /// A credential whose assertion held.
    public struct Checked: Sendable {
        let passkey: UUIDValue
        let verified: VerifiedAuthentication
    }

    /// `ceremony_id` and `assertion`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["ceremony_id"] != nil else { throw .missing("ceremony_id") }
        guard form["assertion"] != nil else { throw .missing("assertion") }
    }

    /// Opens the ceremony and answers it.
    public func read(_ form: FormParameters, _ context: RequestContext) -> Presented? {
        PasskeyCeremony(form["ceremony_id"] ?? "", realm: context.realm.id, keyring: keyring).flatMap {
            answer(form["assertion"] ?? "", to: $0, context)
        }
    }

    /// An assertion for an open ceremony. A malformed one spends its ceremony.
    /// - Returns: `nil` for a ceremony that is not a sign-in of this client.
    package func answer(
        _ assertion: String, to ceremony: PasskeyCeremony, _ context: RequestContext
    ) -> Presented? {
        let (realm, client) = (context.realm, context.client)
        guard ceremony.kind == (context.isOnPage ? .page : .login), ceremony.client == client.key,
            ceremony.thumbprint == nil || ceremony.thumbprint == context.proof?.thumbprint,
            ceremony.rpID == realm.rpID(for: client)
        else { return nil }
        let bytes = Array(assertion.utf8)
        return Presented(ceremony: ceremony, response: try? AuthenticationCeremony.response(parsing: bytes.span))
    }

    /// With a proof of possession alone: an assertion without one may have been copied.
    public func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool { context.proof != nil }

    /// A ceremony is spent by an insert.
    public func turn(of presented: Presented, _ context: RequestContext) -> AttemptTurn { .none }

    /// Spends the ceremony first, then verifies (WebAuthn L3 §7.2): an assertion that fails has spent it, too.
    public func check(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, _ admission: inout Admission
    ) async throws -> Checked {
        let (ceremony, response) = (presented.ceremony, presented.response)
        let start = try await admission.admitting { permits in
            try await passkeys.beginAssertion(
                realm: context.realm.id, client: context.client.key, permission: context.permission(for: grantType),
                ceremony: ceremony.id, expiresAt: Double(ceremony.expiresAt), rpID: ceremony.rpID,
                credentialID: response?.id ?? [], session: session, permits: permits)
        }
        guard case .spent(let credential) = start else { throw refused("ceremony spent or expired") }
        guard let response else { throw refused("malformed assertion") }
        let verified = try verify(response, credential, ceremony, context)
        guard let credential else { throw refused("unknown credential") }
        return Checked(passkey: credential.passkey, verified: verified)
    }

    /// An unknown credential is verified against a decoy key, so that it fails like a bad signature and takes as long.
    private func verify(
        _ response: AuthenticationResponseJSON, _ credential: PasskeyStore.StoredCredential?,
        _ ceremony: PasskeyCeremony, _ context: RequestContext
    ) throws(TokenError) -> VerifiedAuthentication {
        let record =
            credential.map {
                CredentialRecord(
                    id: response.id, publicKey: $0.publicKey, signCount: $0.signCount,
                    backupEligible: $0.backupEligible, userHandle: $0.userHandle)
            } ?? .decoy(for: response)
        let verification = AuthenticationCeremony(
            relyingParty: context.realm.relyingParty(
                for: context.client, rpID: ceremony.rpID, pageOrigin: context.pageOrigin),
            challenge: ceremony.challenge,
            // A counter that went back is refused, and audited, by the statement that would store it.
            signCountPolicy: .report)
        do {
            return try verification.verify(response, credential: record)
        } catch {
            throw refused(credential == nil ? "unknown credential" : "step \(error.step)")
        }
    }

    /// A key bound to the device, or one that is synchronised; user presence and verification were both checked.
    public func amr(of checked: Checked) -> [String] {
        [checked.verified.flags.contains(.backupEligible) ? "swk" : "hwk", "user", "mfa"]
    }

    /// Records counter and session. The permits were taken when the ceremony was spent.
    public func redeem(
        _ checked: Checked, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let outcome = try await passkeys.redeem(
            realm: context.realm.id, client: context.client.key, permission: context.permission(for: grantType),
            passkey: checked.passkey, signCount: checked.verified.presentedSignCount,
            backupState: checked.verified.backupState, session: session)
        return (.decided(outcome), PermitVerdict(granted: [], refused: nil, retryAfter: 0))
    }

    /// For every failed step.
    public func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Passkey verification failed.", reason: reason)
    }
}
