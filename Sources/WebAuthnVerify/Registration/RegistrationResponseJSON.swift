/// `RegistrationResponseJSON`: what a client sends after `navigator.credentials.create()` (WebAuthn L3 §5.1.8).
public struct RegistrationResponseJSON: Sendable, Equatable {
    /// The credential ID; `id` and `rawId`, which must agree.
    public var id: [UInt8]
    /// `response.clientDataJSON`, as received.
    public var clientDataJSON: [UInt8]
    /// `response.attestationObject`, as received. The copies of its parts that clients add (`authenticatorData`,
    /// `publicKey`, `publicKeyAlgorithm`) are ignored: only this one is signed for.
    public var attestationObject: [UInt8]
    /// `response.transports`: hints such as `internal`, `hybrid`, `usb`, unknown words included.
    public var transports: [String]
    /// `platform`, `cross-platform`, another word, or nothing: a hint without proof.
    public var authenticatorAttachment: String?
    /// The JSON text of `clientExtensionResults`, an object; empty when absent. Unsigned: hints without proof.
    public var clientExtensionResults: [UInt8]

    /// Reads the JSON serialisation (§7.1 steps 3 and 4). Unknown members are ignored.
    public init(parsing bytes: Span<UInt8>) throws(ResponseFormatError) {
        let credential = try PublicKeyCredentialJSON(parsing: bytes, as: .registration)
        let response = credential.response
        self.init(
            id: credential.id,
            clientDataJSON: try PublicKeyCredentialJSON.require(response.clientDataJSON, .clientDataJSON),
            attestationObject: try PublicKeyCredentialJSON.require(response.attestationObject, .attestationObject),
            transports: response.transports,
            authenticatorAttachment: credential.authenticatorAttachment,
            clientExtensionResults: credential.clientExtensionResults)
    }

    /// A response from its parts, where they did not arrive as JSON.
    public init(
        id: [UInt8], clientDataJSON: [UInt8], attestationObject: [UInt8], transports: [String] = [],
        authenticatorAttachment: String? = nil, clientExtensionResults: [UInt8] = []
    ) {
        self.id = id
        self.clientDataJSON = clientDataJSON
        self.attestationObject = attestationObject
        self.transports = transports
        self.authenticatorAttachment = authenticatorAttachment
        self.clientExtensionResults = clientExtensionResults
    }
}
