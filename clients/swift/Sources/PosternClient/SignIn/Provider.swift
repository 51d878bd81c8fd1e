import Foundation

/// A sign-in with an identity provider that was begun: what the provider's dialog is given.
public struct ProviderRequest: Sendable, Codable, Hashable, Identifiable {
    /// Made by this library; it opens nothing.
    public let id: String
    /// The provider, by its name at the server.
    public let provider: String
    /// For the provider's dialog, as it is (OpenID Connect Core §3.1.2.1: `nonce`).
    public let nonce: String
    /// When the request expires, by the clock of the device. The server decides.
    public let expiresAt: Date
}

extension ProviderRequest: Discreet {
    /// Everything but the nonce.
    public var shown: [(String, any Sendable)] { [("id", id), ("provider", provider), ("expiresAt", expiresAt)] }
}

/// What the dialog of an identity provider gave out.
public struct ProviderProof: Sendable {
    /// - Parameters:
    ///   - identityToken: the ID token.
    ///   - authorizationCode: Apple's, with which the server can end the provider's session later.
    ///   - names: what the dialog was told; used only when an account is created.
    public init(identityToken: String, authorizationCode: String? = nil, names: Names? = nil) {
        self.identityToken = identityToken
        self.authorizationCode = authorizationCode
        self.names = names
    }

    let identityToken: String
    let authorizationCode: String?
    let names: Names?
}

extension ProviderProof: Discreet {
    /// Nothing.
    public var shown: [(String, any Sendable)] { [] }
}
