import Crypto
public import WebAuthnVerify

/// A registration before it is attested.
public struct RegistrationTemplate: Sendable {
    /// What is registered.
    public var credential: SoftwareCredential
    /// What the client says.
    public var clientData: ClientDataTemplate
    /// What the authenticator says.
    public var authenticatorData: AuthenticatorDataTemplate
    /// How it is attested.
    public var format: AttestationStatementFormat
    /// In `packed`: signed by the credential key instead of a certified one.
    public var selfAttested: Bool
    /// The model that certificates name.
    public var aaguid: [UInt8]
    /// Who signs certificates.
    public var authority: AttestationAuthority
    /// `fmt` as written, where it is not the name of ``format``.
    public var fmt: String?
    /// Changes the statement before it is written.
    public var editStatement: (@Sendable (inout [(String, CBORValue)]) -> Void)?
    /// Bytes after the attestation object.
    public var trailing: [UInt8] = []

    init(
        credential: SoftwareCredential, clientData: ClientDataTemplate, authenticatorData: AuthenticatorDataTemplate,
        format: AttestationStatementFormat, selfAttested: Bool, aaguid: [UInt8], authority: AttestationAuthority
    ) {
        self.credential = credential
        self.clientData = clientData
        self.authenticatorData = authenticatorData
        self.format = format
        self.selfAttested = selfAttested
        self.aaguid = aaguid
        self.authority = authority
    }

    /// Attests and returns the response.
    public func response() throws -> RegistrationResponseJSON {
        let clientDataJSON = clientData.encoded(), authData = authenticatorData.encoded()
        var statement = try statement(authData: authData, clientDataHash: Array(SHA256.hash(data: clientDataJSON)))
        editStatement?(&statement)
        let attStmt = CBORValue.map(statement.map { (.text($0.0), $0.1) })
        // Written by hand because the statement is already encoded; this is the canonical order of the three keys.
        let object =
            CBORValue.head(5, 3) + CBORValue.text("fmt").encoded() + CBORValue.text(fmt ?? format.rawValue).encoded()
            + CBORValue.text("attStmt").encoded() + attStmt
            + CBORValue.text("authData").encoded() + CBORValue.bytes(authData).encoded()
        return RegistrationResponseJSON(
            id: credential.id, clientDataJSON: clientDataJSON, attestationObject: object + trailing,
            transports: ["internal", "hybrid"], authenticatorAttachment: "platform",
            clientExtensionResults: Array("{}".utf8))
    }
}
