import Foundation

/// A proof of possession (RFC 9449 §4.2). It is made for one attempt and never kept.
enum Proof {
    /// - Parameters:
    ///   - url: of the request; its query and fragment are no part of `htu`.
    ///   - token: the access token that goes with the request, if any.
    ///   - nonce: the one that the server gave out, if it did.
    ///   - now: by the clock of the server, as far as it is known.
    static func make(
        _ key: any SigningKey, method: String, url: String, token: String?, nonce: String?, at now: Date
    ) async throws -> String {
        var claims: [String: JSONValue] = [
            "jti": .string(UUID().uuidString), "htm": .string(method),
            "htu": .string(String(url.prefix { $0 != "?" && $0 != "#" })),
            "iat": .number(now.timeIntervalSince1970.rounded(.down)),
        ]
        claims["ath"] = token.map { .string(Base64URL.encode(Digest.sha256(Data($0.utf8)))) }
        claims["nonce"] = nonce.map(JSONValue.string)
        return try await key.sign(type: "dpop+jwt", .object(claims))
    }
}
