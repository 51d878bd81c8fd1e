import Foundation
public import Persistence

/// Who an app says is signed in on its device: an ID token of the realm, sent with a request for a code or a link.
///
/// It signs nobody in. It tells a device that this account has signed in on before from a stranger, so that what strangers do to an
/// account costs its owner nothing (decision 25). Hence its age does not count, nor whether its session still lives; what counts
/// is that this realm signed it. Whether its `sub` is the account asked for is decided where users may be looked at.
public struct IDTokenHint: Sendable, Equatable {
    /// `sub`: the account it was made for.
    public let user: UUIDValue
    /// `sid`: the session it was made for, which names the device.
    public let session: UUIDValue

    /// Longer ones are not looked at. Ours have some 700 characters.
    static let maximumLength = 4096

    /// - Parameters:
    ///   - text: what was presented.
    ///   - client: where the request names one, only an ID token made for that client (`aud`) fits.
    /// - Returns: `nil` for whatever is no ID token of this realm.
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
        self.session = session
    }

    /// Read only after the signature held.
    private struct Claims: Decodable {
        let iss: String
        let sub: String
        let aud: String
        let sid: String
    }
}

/// The public half of a signing key that is not yet deleted, retired or not.
struct HintKey: Sendable, Equatable {
    /// The JWS protected header of an ID token that the key signed.
    let header: String
    let algorithm: ClientKey.Algorithm
    let key: ClientKey

    /// `nil` for a key of an algorithm this binary does not know.
    init?(kid: String, alg: String, publicJWK: ClientKey) {
        guard let algorithm = ClientKey.Algorithm(rawValue: alg) else { return nil }
        self.algorithm = algorithm
        key = publicJWK
        header = SigningKey.header(alg: alg, typ: "JWT", kid: kid)
    }
}
