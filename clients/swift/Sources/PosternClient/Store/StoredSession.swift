import Foundation

/// A session: one family of refresh tokens.
struct StoredSession: StoredObject {
    var members: [String: JSONValue]

    init?(_ members: [String: JSONValue]) {
        self.members = members
        guard string("id") != nil, string("idToken") != nil, user != nil else { return nil }
    }

    /// - Parameters:
    ///   - idToken: checked already.
    ///   - key: thumbprint of the key that its tokens are bound to; `nil` for bearer tokens.
    init(idToken: String, refreshToken: String?, scopes: [String], key: String?) {
        members = ["id": .string(UUID().uuidString), "idToken": .string(idToken)]
        self.refreshToken = refreshToken
        self.scopes = scopes
        self.boundKey = key
    }

    /// Made by this library, and the same as long as the session lives.
    var id: String { string("id") ?? "" }

    var idToken: String {
        get { string("idToken") ?? "" }
        set { set("idToken", newValue) }
    }

    var refreshToken: String? {
        get { string("refreshToken") }
        set { set("refreshToken", newValue) }
    }

    /// What the sign-in was granted.
    var scopes: [String] {
        get { strings("scopes") }
        set { set("scopes", newValue) }
    }

    var boundKey: String? {
        get { string("jkt") }
        set { set("jkt", newValue) }
    }

    /// Of the ID token; `nil` only if that is none.
    var user: User? { IDToken(idToken).flatMap { User(claims: $0.claims) } }
}

/// An access token of the session.
struct StoredToken: StoredObject {
    var members: [String: JSONValue]

    init?(_ members: [String: JSONValue]) {
        self.members = members
        guard string("audience") != nil, string("value") != nil,
            string("type").flatMap(AccessToken.TokenType.init) != nil,
            date("issued") != nil, date("expires") != nil
        else { return nil }
    }

    init(_ token: AccessToken, audience: String, issuedAt: Date) {
        members = ["audience": .string(audience), "value": .string(token.value), "type": .string(token.type.rawValue)]
        set("scopes", token.scopes)
        set("issued", issuedAt)
        set("expires", token.expiresAt)
    }

    var audience: String { string("audience") ?? "" }
    var value: String { string("value") ?? "" }
    var issuedAt: Date { date("issued") ?? .distantPast }
    var token: AccessToken {
        AccessToken(
            value: value, type: string("type").flatMap(AccessToken.TokenType.init) ?? .bearer,
            scopes: strings("scopes"), expiresAt: date("expires") ?? .distantPast)
    }
}

/// A request of a sign-in that is under way. Its secret handle stays in the store.
struct PendingRequest: StoredObject {
    var members: [String: JSONValue]

    init?(_ members: [String: JSONValue]) {
        self.members = members
        guard string("id") != nil, string("kind") != nil else { return nil }
    }

    /// - Parameters:
    ///   - kind: of the request, such as `code` or `link`; the parts of the library that make it know the rest.
    init(id: String = UUID().uuidString, kind: String, _ members: [String: JSONValue]) {
        self.members = members.merging(["id": .string(id), "kind": .string(kind)]) { $1 }
    }

    var id: String { string("id") ?? "" }
    var kind: String { string("kind") ?? "" }
}

/// The key of the store.
struct StoredKey: StoredObject {
    enum Kind: String { case software, enclave }

    var members: [String: JSONValue]

    init?(_ members: [String: JSONValue]) {
        self.members = members
        guard string("kind").flatMap(Kind.init) != nil, string("value").flatMap(Base64URL.decode) != nil else {
            return nil
        }
    }

    /// - Parameter value: the 32 bytes of a software key, or what the Secure Enclave gave out for its own.
    init(_ kind: Kind, _ value: Data) {
        members = ["kind": .string(kind.rawValue), "value": .string(Base64URL.encode(value))]
    }

    var kind: Kind { string("kind").flatMap(Kind.init) ?? .software }
    var value: Data { string("value").flatMap(Base64URL.decode) ?? Data() }
}
