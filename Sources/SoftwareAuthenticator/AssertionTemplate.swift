import Encoding
import Crypto
public import WebAuthnVerify

/// An assertion before it is signed.
public struct AssertionTemplate: Sendable {
    /// Who signs.
    public var credential: SoftwareCredential
    /// What the client says.
    public var clientData: ClientDataTemplate
    /// What the authenticator says.
    public var authenticatorData: AuthenticatorDataTemplate

    /// Signs and returns the response.
    public func response() throws -> AuthenticationResponseJSON {
        let clientDataJSON = clientData.encoded(), authData = authenticatorData.encoded()
        return AuthenticationResponseJSON(
            id: credential.id, clientDataJSON: clientDataJSON, authenticatorData: authData,
            signature: try credential.key.sign(authData + Array(SHA256.hash(data: clientDataJSON))),
            userHandle: credential.userHandle, authenticatorAttachment: "platform",
            clientExtensionResults: Array("{}".utf8))
    }
}

extension AuthenticationResponseJSON {
    /// The JSON serialisation, as a client sends it.
    public func json() -> String {
        let id = Base64.urlEncode(id)
        var members = [
            #""clientDataJSON":"\#(Base64.urlEncode(clientDataJSON))""#,
            #""authenticatorData":"\#(Base64.urlEncode(authenticatorData))""#,
            #""signature":"\#(Base64.urlEncode(signature))""#,
        ]
        if let userHandle { members.append(#""userHandle":"\#(Base64.urlEncode(userHandle))""#) }
        return #"{"id":"\#(id)","rawId":"\#(id)","type":"public-key","authenticatorAttachment":"platform","#
            + #""clientExtensionResults":{},"response":{\#(members.joined(separator: ","))}}"#
    }
}

extension RegistrationResponseJSON {
    /// The JSON serialisation, as a client sends it.
    public func json() -> String {
        let id = Base64.urlEncode(id)
        let transports = transports.map(ClientDataTemplate.quoted).joined(separator: ",")
        return #"{"id":"\#(id)","rawId":"\#(id)","type":"public-key","authenticatorAttachment":"platform","#
            + #""clientExtensionResults":{},"response":{"clientDataJSON":"\#(Base64.urlEncode(clientDataJSON))","#
            + #""attestationObject":"\#(Base64.urlEncode(attestationObject))","transports":[\#(transports)]}}"#
    }
}
