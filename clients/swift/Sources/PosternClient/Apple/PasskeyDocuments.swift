import Foundation

/// What AuthenticationServices wants to know of the options of a ceremony (WebAuthn Level 3 §5.4, §5.5).
struct PasskeyOptions: Equatable {
    let challenge: Data
    let rpID: String
    /// `userVerification`: `required`, `preferred` or `discouraged`.
    let verification: String
    /// Passkeys that may sign in, or that must not be made again.
    let credentials: [Data]
    /// Of a registration.
    let user: User?

    struct User: Equatable {
        let id: Data
        let name: String
    }

    /// PublicKeyCredentialCreationOptionsJSON.
    init?(creation options: Data) {
        let json = JSONValue(options)
        guard let challenge = Self.bytes(json?["challenge"]), let rpID = json?["rp"]?["id"]?.string,
            let id = Self.bytes(json?["user"]?["id"]), let name = json?["user"]?["name"]?.string
        else { return nil }
        self.init(
            challenge: challenge, rpID: rpID,
            verification: json?["authenticatorSelection"]?["userVerification"]?.string ?? "preferred",
            credentials: Self.ids(json?["excludeCredentials"]), user: User(id: id, name: name))
    }

    /// PublicKeyCredentialRequestOptionsJSON.
    init?(request options: Data) {
        let json = JSONValue(options)
        guard let challenge = Self.bytes(json?["challenge"]), let rpID = json?["rpId"]?.string else { return nil }
        self.init(
            challenge: challenge, rpID: rpID, verification: json?["userVerification"]?.string ?? "preferred",
            credentials: Self.ids(json?["allowCredentials"]), user: nil)
    }

    private init(challenge: Data, rpID: String, verification: String, credentials: [Data], user: User?) {
        self.challenge = challenge
        self.rpID = rpID
        self.verification = verification
        self.credentials = credentials
        self.user = user
    }

    private static func bytes(_ json: JSONValue?) -> Data? { json?.string.flatMap(Base64URL.decode) }
    private static func ids(_ json: JSONValue?) -> [Data] { json?.array?.compactMap { bytes($0["id"]) } ?? [] }
}

/// What AuthenticationServices gives, as the documents of WebAuthn Level 3.
enum PasskeyDocument {
    /// RegistrationResponseJSON (§5.1.8).
    static func registration(id: Data, clientData: Data, attestation: Data) -> Data {
        document(
            id,
            [
                "clientDataJSON": text(clientData), "attestationObject": text(attestation),
                "transports": ["internal", "hybrid"],
            ])
    }

    /// AuthenticationResponseJSON (§5.1.8).
    static func assertion(
        id: Data, clientData: Data, authenticatorData: Data, signature: Data, user: Data
    ) -> Data {
        document(
            id,
            [
                "clientDataJSON": text(clientData), "authenticatorData": text(authenticatorData),
                "signature": text(signature), "userHandle": text(user),
            ])
    }

    private static func document(_ id: Data, _ response: JSONValue) -> Data {
        let json: JSONValue = [
            "id": text(id), "rawId": text(id), "type": "public-key", "authenticatorAttachment": "platform",
            "clientExtensionResults": [:], "response": response,
        ]
        return json.data
    }

    private static func text(_ bytes: Data) -> JSONValue { .string(Base64URL.encode(bytes)) }
}
