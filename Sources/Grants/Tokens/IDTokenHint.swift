public import Persistence

/// An ID token of the realm that an app sends with a request for a code or a link (`id_token_hint`).
///
/// It grants no access. It marks the request as one from a device that the account has signed in on before, so that
/// requests of strangers do not use up the owner's limits (docs/decisions/0025). It only has to be signed by this
/// realm: its age and the state of its session do not matter. The worker, which may read users, checks that its `sub`
/// is the requested account.
public struct IDTokenHint: Sendable, Equatable {
    /// `sub`: the account it was made for.
    public let user: UUIDValue
    /// `sid`: the session it was made for, which names the device.
    public let session: UUIDValue

    /// `aud`: the client it was made for.
    let clientID: String

    /// Longer ones are not looked at. Ours have some 700 characters.
    static let maximumLength = 4096

    /// - Parameters:
    ///   - text: the presented token.
    ///   - client: the client that the request names, if any; the token must be made for it (`aud`).
    /// - Returns: `nil` if the text is not an ID token of this realm.
    public init?(_ text: String, realm: Realm, client: Client?) {
        let jwt = RealmJWT(text, maximumBytes: Self.maximumLength) { header, signature, input in
            realm.hintKeys.first { $0.header == header }.map {
                $0.key.isValidSignature(signature, for: input, $0.algorithm)
            } ?? false
        }
        guard let claims = jwt?.claims, claims.text("iss") == realm.issuer, let audience = claims.text("aud"),
            client == nil || audience == client?.clientID,
            let user = claims.text("sub").flatMap(UUIDValue.init),
            let session = claims.text("sid").flatMap(UUIDValue.init)
        else { return nil }
        self.user = user
        clientID = audience
        self.session = session
    }

    /// The browser session of a page, which stands for the ID token of an app.
    init(user: UUIDValue, session: UUIDValue, clientID: String) {
        self.user = user
        self.session = session
        self.clientID = clientID
    }
}
