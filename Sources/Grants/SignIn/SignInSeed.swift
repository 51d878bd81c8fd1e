import Persistence

/// What a sign-in derives its session from, so that the identical request of the same client and key names the same
/// one: its answer may have been lost.
///
/// Over all parameters of the request but the client's credentials. Nothing of it is stored.
struct SignInSeed: Sendable {
    /// The line of the key file that the session is made under.
    let key: ServerKey
    private let seed: [UInt8]

    init(_ request: TokenRequest, keyring: Keyring) {
        key = keyring.newest
        let context = request.context
        var parts: [[UInt8]] = [
            context.realm.id.bytes, context.client.key.bytes, context.proof?.thumbprint ?? [],
            [context.proof?.binds == true ? 1 : 0],
        ]
        for (name, value) in request.form.sorted where !Self.credentials.contains(name) {
            parts += [Array(name.utf8), Array(value.utf8)]
        }
        parts += request.form.resources.map { Array($0.utf8) }
        seed = key.hmac(.signIn, parts)
    }

    /// The row's id.
    var session: UUIDValue { UUIDValue(derivedFrom: derive("session")) }
    /// 16 bytes that key the session's reference access tokens.
    var tokenSalt: [UInt8] { Array(derive("salt").prefix(16)) }
    /// Of the first refresh token, 32 bytes.
    var refreshSecret: [UInt8] { derive("refresh") }

    private func derive(_ use: String) -> [UInt8] { key.hmac(.signIn, [Array(use.utf8), seed]) }

    private static let credentials: Set<String> = [
        "client_id", "client_secret", "client_assertion", "client_assertion_type",
    ]
}
