/// Which attestations are accepted, and which roots are trusted for them (WebAuthn L3 §7.1 steps 21 to 24).
///
/// The default suits a relying party that asks for `none`: every format is verified, and the credential is kept with
/// the trust that results. Without anchors that is at best ``AttestationTrust/untrusted``.
public struct AttestationPolicy: Sendable {
    /// The formats accepted.
    public var formats: Set<AttestationStatementFormat>
    /// Trust anchors by format: DER certificates, root or intermediate, or an attestation certificate itself.
    public var trustAnchors: [AttestationStatementFormat: [[UInt8]]]
    /// The trust a registration needs.
    public var accepted: Set<AttestationTrust>
    /// Whether RSASSA-PKCS1-v1_5 with SHA-1 is accepted in `tpm` statements. Many TPMs of the 2010s sign with nothing
    /// else.
    public var acceptsSHA1: Bool

    /// A policy; every parameter has a default.
    public init(
        formats: Set<AttestationStatementFormat> = Set(AttestationStatementFormat.allCases),
        trustAnchors: [AttestationStatementFormat: [[UInt8]]] = [:],
        accepted: Set<AttestationTrust> = [.none, .selfAttested, .untrusted, .trusted],
        acceptsSHA1: Bool = false
    ) {
        self.formats = formats
        self.trustAnchors = trustAnchors
        self.accepted = accepted
        self.acceptsSHA1 = acceptsSHA1
    }
}
