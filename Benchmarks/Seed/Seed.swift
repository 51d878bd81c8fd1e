import Crypto
import Foundation
import Grants
import Persistence
import SoftwareAuthenticator
import WebAuthnVerify

/// One kind of material per function: request values, and the rows behind them.
struct Seed {
    let keyring: Keyring
    let realm: UUIDValue
    let count: Int

    /// The code of every seeded account.
    static let code = "123456"

    /// Values: refresh tokens. Rows: session, salt, hash of the token.
    func refreshTokens() -> (values: [String], rows: [String]) {
        let tokens = (0..<count).map { _ in RefreshToken.first(realm: realm, session: .random(), keyring: keyring) }
        return (tokens.map(\.text), tokens.map { "\($0.session)\t\(hex(randomBytes(16)))\t\(hex($0.hash))" })
    }

    /// Values: opaque access tokens of `count` sessions drawn from those that sql/bench/seed.sql made. No rows.
    func accessTokens(_ arguments: [String]) throws -> (values: [String], rows: [String]) {
        guard let sessions = Int(arguments[0]), let authTime = Int(arguments[1]) else { throw Usage() }
        let values = try (0..<count).map { _ in
            let n = Int.random(in: 1...sessions)
            let token = AccessToken(
                owner: Self.uid("session", n), issuedAt: authTime, lifetime: 86_400, sessionExpiresAt: .max,
                scope: ["openid", "profile"], audience: [arguments[2]])
            return try SealedReference.text(
                token, epoch: authTime, realm: realm, salt: Self.uid("salt", n).bytes, keyring: keyring)
        }
        return (values, [])
    }

    /// Values: `username` and `auth_session` of one live code, tab-separated. Rows: user number, handle, salt, salted
    /// hash.
    func codes(_ arguments: [String]) throws -> (values: [String], rows: [String]) {
        guard let first = Int(arguments[0]) else { throw Usage() }
        var values: [String] = []
        var rows: [String] = []
        for n in first..<(first + count) {
            let email = "user\(n)@example.org"
            let handle = AuthSessionHandle(addressKey: email)
            let salt = randomBytes(16)
            let keyed = OneTimeCode.keyed(Self.code, realm: realm, addressKey: email, under: keyring.newest)
            values.append("\(email)\t\(try handle.text(realm: realm, keyring: keyring))")
            rows.append("\(n)\t\(hex(handle.id))\t\(hex(salt))\t\(hex(Array(SHA256.hash(data: salt + keyed))))")
        }
        return (values, rows)
    }

    /// Values: `ceremony_id` and percent-encoded `assertion` as form parameters. Rows: user number, credential id, COSE
    /// key, user handle.
    func assertions(_ arguments: [String]) throws -> (values: [String], rows: [String]) {
        guard let client = UUIDValue(arguments[0]), let users = Int(arguments[2]) else { throw Usage() }
        let rpID = arguments[1]
        let authenticator = try SoftwareAuthenticator()
        let credentials = try (0..<users).map { _ in
            try authenticator.makeCredential(rpId: rpID, userHandle: randomBytes(32))
        }
        let expiry = Int(Date().timeIntervalSince1970) + 3600
        let values = try (0..<count).map { n in
            let ceremony = PasskeyCeremony.login(client: client, rpID: rpID, expiresAt: expiry)
            let assertion = authenticator.assertion(
                by: credentials[n % users], challenge: ceremony.challenge, origin: "https://\(rpID)")
            let text = try ceremony.text(realm: realm, keyring: keyring)
            let json = try assertion.response().json().addingPercentEncoding(withAllowedCharacters: .alphanumerics)
            return "ceremony_id=\(text)&assertion=\(json ?? "")"
        }
        let rows = try credentials.enumerated().map { n, credential in
            let key = try credential.key.coseKey(credential.algorithm)
            return "\(n + 1)\t\(hex(credential.id))\t\(hex(key))\t\(hex(credential.userHandle))"
        }
        return (values, rows)
    }

    /// `bench.uid(kind, n)` of sql/bench/seed.sql.
    private static func uid(_ kind: String, _ n: Int) -> UUIDValue {
        var bytes = Array(Insecure.MD5.hash(data: Data("\(kind)\(n)".utf8)))
        bytes[6] = bytes[6] & 0x0F | 0x40
        return UUIDValue(bytes: bytes) ?? .random()
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
