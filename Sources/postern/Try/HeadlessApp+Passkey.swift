import Encoding
import Foundation
import Grants
import SoftwareAuthenticator
import WebAuthnVerify

extension HeadlessApp {
    /// A passkey of this app's software authenticator, as the server knows it and with its private key.
    struct Passkey {
        /// The management id.
        let id: String
        let credential: SoftwareCredential
    }

    /// An item of `GET /connect/passkey`.
    struct ListedPasskey: Decodable {
        let Id: String
        let DisplayName: String
    }

    /// Registers a new credential for the user of `tokens`, who signed in a moment ago.
    func enrol(with authenticator: SoftwareAuthenticator, tokens: Tokens) async throws -> Passkey {
        struct Begun: Decodable {
            struct Options: Decodable {
                struct RelyingParty: Decodable { let id: String }
                struct User: Decodable { let id: String }
                let rp: RelyingParty
                let user: User
                let challenge: String
            }
            let ceremonyId: String
            let options: Options
        }
        struct Enrolled: Decodable { let Id: String }

        let begun: Begun = try decode(try await exchange(.post, "/connect/passkey/enroll/begin", tokens: tokens))
        let credential = try authenticator.makeCredential(
            rpId: begun.options.rp.id, userHandle: try bytes(begun.options.user.id))
        let registration = try authenticator.registration(
            of: credential, challenge: try bytes(begun.options.challenge), origin: Self.origin(begun.options.rp.id))
        var request = JSONWriter(reserving: 2048)
        request.member("ceremonyId", begun.ceremonyId)
        request.member("attestation", json: try registration.response().json().utf8)
        request.member("DisplayName", "Headless app")
        let body = String(decoding: request.finish(), as: UTF8.self)
        let enrolled: Enrolled = try decode(try await post("/connect/passkey/enroll", json: body, tokens: tokens))
        return Passkey(id: enrolled.Id, credential: credential)
    }

    /// Signs in with nothing but the passkey.
    func signIn(with authenticator: SoftwareAuthenticator, _ passkey: Passkey) async throws -> Tokens {
        struct Begun: Decodable {
            struct Options: Decodable {
                let challenge: String
                let rpId: String
            }
            let ceremonyId: String
            let options: Options
        }
        let begun: Begun = try decode(try await post("/connect/passkey/begin", form: [("client_id", options.client)]))
        guard begun.options.rpId == passkey.credential.rpId else {
            throw CommandFailure("the passkey is for \(passkey.credential.rpId), the sign-in for \(begun.options.rpId)")
        }
        let assertion = authenticator.assertion(
            by: passkey.credential, challenge: try bytes(begun.options.challenge),
            origin: Self.origin(begun.options.rpId))
        return try await token([
            ("grant_type", "urn:cocoar:passkey"), ("client_id", options.client), ("ceremony_id", begun.ceremonyId),
            ("assertion", try assertion.response().json()), ("scope", options.scope),
        ])
    }

    /// The user's passkeys, newest first.
    func passkeys(_ tokens: Tokens) async throws -> [ListedPasskey] {
        try decode(try await exchange(.get, "/connect/passkey", tokens: tokens))
    }

    /// Deletes a passkey.
    func delete(_ passkey: Passkey, tokens: Tokens) async throws {
        _ = try await exchange(.delete, "/connect/passkey/\(passkey.id)", tokens: tokens)
    }

    /// The origin that an app on the relying party's own site sends; the server accepts it without registration.
    private static func origin(_ rpId: String) -> String {
        "https://" + rpId
    }

    private func bytes(_ base64URL: String) throws -> [UInt8] {
        guard let bytes = Base64.urlDecode(base64URL) else {
            throw CommandFailure("the server sent an unexpected answer: \(base64URL) is not base64url")
        }
        return bytes
    }
}
