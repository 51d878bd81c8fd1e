/// `AuthenticationResponseJSON`: what a client sends after `navigator.credentials.get()` (WebAuthn L3 §5.1.8).
public struct AuthenticationResponseJSON: Sendable, Equatable {
    /// The credential ID; `id` and `rawId`, which must agree.
    public var id: [UInt8]
    /// `response.clientDataJSON`, as received.
    public var clientDataJSON: [UInt8]
    /// `response.authenticatorData`, as received.
    public var authenticatorData: [UInt8]
    /// `response.signature`.
    public var signature: [UInt8]
    /// `response.userHandle`, 1 to 64 bytes; nil when absent or null.
    public var userHandle: [UInt8]?
    /// `platform`, `cross-platform`, another word, or nothing: a hint without proof.
    public var authenticatorAttachment: String?
    /// The JSON text of `clientExtensionResults`, an object; empty when absent. Unsigned: hints without proof.
    public var clientExtensionResults: [UInt8]

    /// Reads the JSON serialisation (§7.2 steps 3, 4 and 7). Unknown members are ignored.
    public init(parsing bytes: Span<UInt8>) throws(ResponseFormatError) {
        let credential = try PublicKeyCredentialJSON(parsing: bytes, as: .authentication)
        let response = credential.response
        // WebAuthn L3 §5.4.3: a user handle has 1 to 64 bytes.
        if let userHandle = response.userHandle, !(1...64).contains(userHandle.count) {
            throw .malformedMember(.userHandle)
        }
        self.init(
            id: credential.id,
            clientDataJSON: try PublicKeyCredentialJSON.require(response.clientDataJSON, .clientDataJSON),
            authenticatorData: try PublicKeyCredentialJSON.require(response.authenticatorData, .authenticatorData),
            signature: try PublicKeyCredentialJSON.require(response.signature, .signature),
            userHandle: response.userHandle,
            authenticatorAttachment: credential.authenticatorAttachment,
            clientExtensionResults: credential.clientExtensionResults)
    }

    /// A response from its parts, where they did not arrive as JSON.
    public init(
        id: [UInt8], clientDataJSON: [UInt8], authenticatorData: [UInt8], signature: [UInt8], userHandle: [UInt8]?,
        authenticatorAttachment: String? = nil, clientExtensionResults: [UInt8] = []
    ) {
        self.id = id
        self.clientDataJSON = clientDataJSON
        self.authenticatorData = authenticatorData
        self.signature = signature
        self.userHandle = userHandle
        self.authenticatorAttachment = authenticatorAttachment
        self.clientExtensionResults = clientExtensionResults
    }
}
