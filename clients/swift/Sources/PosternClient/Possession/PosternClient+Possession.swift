import Foundation

extension PosternClient {
    /// Takes part in a check of a phone number that a backend began. This pins the check to the key of this device; nothing
    /// is sent before ``PossessionCheck/send(_:to:)``.
    /// - Parameter authToken: of the backend. It is a secret, good for 15 minutes.
    public func possession(_ authToken: String) async throws -> PossessionCheck {
        guard AccessToken.isToken(authToken) else { throw PosternError.misuse("authToken is none of the server's") }
        let answer = try await accepted(
            Call(
                path: PossessionCheck.path + "open", body: .json([:]), token: PossessionCheck.token(authToken),
                proof: .device, nonce: Self.nonce(in: authToken)),
            as: .other)
        let status = try answer.item(PossessionCheck.Status.init)
        let end = surroundings.now().addingTimeInterval(answer.json?["expiresIn"]?.seconds ?? 900)
        return PossessionCheck(self, authToken: authToken, status, until: end)
    }

    /// Signs in with a number that was proven.
    public func signIn(with check: PossessionCheck, secondFactor: SecondFactor? = nil) async throws -> User {
        let form = [("grant_type", GrantType.possession), ("auth_token", check.authToken), scopeField]
        let answer = try await token(
            form + [secondFactor?.field].compactMap { $0 }, as: .other, proof: .device, repeats: .whileLost)
        let user = try await establish(answer)
        await check.wasRedeemed()
        return user
    }

    /// The nonce that the token brings along: it saves the first question for one.
    private static func nonce(in token: String) -> String? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(String(parts[1])) else { return nil }
        return JSONValue(payload)?["nonce"]?.string
    }
}
