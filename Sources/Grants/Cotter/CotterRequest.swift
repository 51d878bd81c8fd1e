import Encoding
public import Persistence

extension Client {
    /// Whether it uses Cotter's web wire: public, with `cap:cotter`, whose needs SQL keeps.
    public var speaksCotter: Bool {
        enabled && !isConfidential && permissions.contains("cap:cotter") && issuesJWTAccessTokens
    }
}

extension Realm {
    /// Whether there is Cotter's web wire at all.
    public var offersCotter: Bool { hosted.isEnabled && clients.values.contains(where: \.speaksCotter) }

    /// The client of an API key.
    public func cotterClient(_ key: String?) throws(CotterRefusal) -> Client {
        guard let client = key.flatMap({ clients[$0] }), client.speaksCotter, admits(client) else {
            throw .apiKey
        }
        return client
    }
}

extension AuthorizationRequest {
    /// Reads the query of Cotter's `/app`: an authorization request in other words, for the proof of an address.
    /// - Parameter form: `api_key`, `redirect_url`, `type`, `code_challenge`, `state`, `auth_method`, `input`,
    ///   `use_channel`, `phone_channels[]`.
    /// - Throws: `AuthorizationRefusal`.
    public init(cotter form: FormParameters, realm: Realm) throws {
        guard let client = try? realm.cotterClient(form["api_key"]) else {
            throw AuthorizationRefusal.page(.invalidClient)
        }
        guard let redirectURL = form["redirect_url"], client.mayRedirect(to: redirectURL) else {
            throw AuthorizationRefusal.page(.invalidRedirectURI)
        }
        let kind: WantedProof.Kind? =
            switch form["type"] {
            case "EMAIL": .email
            case "PHONE": .phone
            default: nil
            }
        let proof = WantedProof(
            kind ?? .email, prefersLink: form["auth_method"] == "MAGIC_LINK", channel: Channel(cotter: form))
        let scope =
            ["openid", "offline_access"]
            + ["profile", "email", "phone"].filter {
                realm.scopes[$0]?.enabled == true && client.mayRequest(scope: $0)
            }
        var values: [(name: String, value: String)] = [
            ("client_id", client.clientID), ("redirect_uri", redirectURL), ("scope", scope.joined(separator: " ")),
            ("code_challenge_method", "S256"), ("prompt", Prompt.selectAccount.rawValue),
            ("acr_values", "urn:postern:acr:\(proof.kind.rawValue)"),
        ]
        // Without a type that there is, the request has no response type either, and is refused as such.
        if kind != nil { values.append(("response_type", "code")) }
        if let state = form["state"] { values.append(("state", state)) }
        if let challenge = form["code_challenge"] { values.append(("code_challenge", challenge.withoutEscapes)) }
        if let input = form["input"] { values.append(("login_hint", input)) }
        guard let translated = FormParameters(values) else { throw AuthorizationRefusal.page(.invalidRequest) }
        try self.init(
            Parameters(translated, issuer: realm.issuer, proof: proof), realm: realm, client: client, from: .query)
    }
}

extension Channel {
    /// The parameters of `/app` that may repeat: the first value counts.
    public static let cotterLists: Set<String> = ["phone_channels[]"]

    /// What the client wants its codes for phones to come by: `use_channel`, else the first of `phone_channels[]`.
    fileprivate init?(cotter form: FormParameters) {
        switch form["use_channel"] ?? form["phone_channels[]"] {
        case "SMS": self = .sms
        case "WHATSAPP": self = .whatsapp
        default: return nil
        }
    }
}

extension String {
    /// A sample of Cotter's documents writes `\_` for the underscore of base64url.
    var withoutEscapes: String { replacing("\\_", with: "_") }
}
