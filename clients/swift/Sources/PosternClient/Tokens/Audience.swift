import Foundation

/// Whom an access token is for. Each audience has a token of its own.
public struct Audience: Sendable, Hashable {
    enum Kind: Hashable, Sendable { case signIn, account, api }

    let kind: Kind
    let scopes: [String]
    let resource: URL?

    /// What the sign-in asked for.
    public static var `default`: Audience { Audience(kind: .signIn, scopes: [], resource: nil) }

    /// The account endpoints of the server; ``PosternClient/account`` uses it.
    public static var account: Audience { Audience(kind: .account, scopes: ["openid"], resource: nil) }

    /// An API of your own.
    /// - Parameters:
    ///   - scopes: what the token is to have, a part of what the sign-in was granted.
    ///   - resource: the API, if the scopes do not say it (RFC 8707).
    public static func api(scopes: [String], resource: URL? = nil) -> Audience {
        Audience(kind: .api, scopes: scopes, resource: resource)
    }
}

extension Audience {
    /// Scopes that speak of the person only: a token of them alone opens the account endpoints.
    private static let identityScopes: Set = [
        "openid", "offline_access", "profile", "email", "phone", "address", "roles", "groups", "entitlements",
    ]

    /// The audience whose token serves this one, for a sign-in that asks for these scopes.
    func served(by signIn: [String]) -> Audience {
        kind == .account && Self.identityScopes.isSuperset(of: signIn) ? .default : self
    }

    /// Its name in the store.
    var name: String {
        switch kind {
        case .signIn: "default"
        case .account: "account"
        case .api: "api \(scopes.sorted().joined(separator: " "))|\(resource?.absoluteString ?? "")"
        }
    }

    /// What a refresh asks for; nothing for all of the session's scopes (RFC 6749 §6, RFC 8707 §2.2).
    var form: [(String, String)] {
        guard kind != .signIn else { return [] }
        return [("scope", scopes.joined(separator: " "))] + (resource.map { [("resource", $0.absoluteString)] } ?? [])
    }
}
