import Encoding
import Foundation
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
        guard text.utf8.count <= Self.maximumLength else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        // As for access tokens: the header is, character for character, one that this realm writes over ID tokens.
        guard parts.count == 3, let key = realm.hintKeys.first(where: { $0.header == parts[0] }),
            let signature = Base64.urlDecode(parts[2]),
            key.key.isValidSignature(signature, for: Array("\(parts[0]).\(parts[1])".utf8), key.algorithm),
            let payload = Base64.urlDecode(parts[1]),
            let claims = try? JSONDecoder().decode(Claims.self, from: Data(payload)),
            claims.iss == realm.issuer, client == nil || claims.aud == client?.clientID,
            let user = UUIDValue(claims.sub), let session = UUIDValue(claims.sid)
        else { return nil }
        self.user = user
        clientID = claims.aud
        self.session = session
    }

    /// The browser session of a page, which stands for the ID token of an app.
    init(user: UUIDValue, session: UUIDValue, clientID: String) {
        self.user = user
        self.session = session
        self.clientID = clientID
    }

    /// Read only after the signature held.
    private struct Claims: Decodable {
        let iss: String
        let sub: String
        let aud: String
        let sid: String
    }
}
