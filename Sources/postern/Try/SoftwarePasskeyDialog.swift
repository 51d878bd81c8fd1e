import Encoding
import Foundation
import PosternClient
import SoftwareAuthenticator
import Synchronization
import WebAuthnVerify

/// Answers WebAuthn ceremonies by itself. Its passkeys are in memory, and end with the process.
final class SoftwarePasskeyDialog: PasskeyDialog {
    private let authenticator: SoftwareAuthenticator
    private let passkeys = Mutex<[SoftwareCredential]>([])

    init() throws { authenticator = try SoftwareAuthenticator() }

    /// Makes a passkey (WebAuthn Level 3 §5.1.3).
    func create(_ options: Data) async throws -> Data {
        struct Options: Decodable {
            struct RelyingParty: Decodable { let id: String }
            struct User: Decodable { let id: String }
            let rp: RelyingParty
            let user: User
            let challenge: String
        }
        let options = try JSONDecoder().decode(Options.self, from: options)
        let passkey = try authenticator.makeCredential(
            rpId: options.rp.id, userHandle: try Self.bytes(options.user.id))
        let registration = try authenticator.registration(
            of: passkey, challenge: try Self.bytes(options.challenge), origin: Self.origin(options.rp.id))
        passkeys.withLock { $0.append(passkey) }
        return Data(try registration.response().json().utf8)
    }

    /// Uses the newest passkey for the relying party (WebAuthn Level 3 §5.1.4).
    func get(_ options: Data, style: PasskeyStyle) async throws -> Data {
        struct Options: Decodable {
            let challenge: String
            let rpId: String
        }
        let options = try JSONDecoder().decode(Options.self, from: options)
        let found = passkeys.withLock { passkeys in passkeys.last { $0.rpId == options.rpId } }
        guard let found else { throw DialogCancelled() }
        let assertion = authenticator.assertion(
            by: found, challenge: try Self.bytes(options.challenge), origin: Self.origin(options.rpId))
        return Data(try assertion.response().json().utf8)
    }

    /// The origin that an app on the relying party's own site sends; the server accepts it without registration.
    private static func origin(_ rpID: String) -> String { "https://" + rpID }

    private static func bytes(_ text: String) throws -> [UInt8] {
        guard let bytes = Base64.urlDecode(text) else { throw CommandFailure("\(text) is not base64url") }
        return bytes
    }
}
