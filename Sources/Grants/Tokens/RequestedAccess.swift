/// The scope and resource of a token request (RFC 6749 §3.3, RFC 8707 §2), checked against realm and client.
package struct RequestedAccess: Sendable, Equatable {
    /// Distinct scope names in the order asked for; empty when no scope was asked for.
    package let scope: [String]
    /// `resource` values (RFC 8707), spelled as registered; empty when none was sent.
    let resources: [String]

    private static let maximumScopeBytes = 4096
    private static let maximumResources = 32

    /// Checks what was asked for, independent of any account.
    package init(
        _ form: FormParameters, realm: Realm, client: Client, ignoringScope: Bool = false
    ) throws(TokenError) {
        scope = try Self.scope(ignoringScope ? nil : form["scope"], realm: realm, client: client)
        guard form.resources.count <= Self.maximumResources else { throw Self.invalidTarget("too many resources") }
        resources = form.resources.isEmpty ? [] : Self.asRegistered(form.resources, realm: realm)
    }

    /// What was checked before, and comes back sealed.
    init(scope: [String], resources: [String]) {
        self.scope = scope
        self.resources = resources
    }

    /// The audience: the resources of the granted scopes, narrowed by `resource`; the `client_id` when there are none.
    package func audience(of granted: [String], realm: Realm, client: Client) throws(TokenError) -> [String] {
        let allowed = Self.resources(of: granted, realm: realm)
        guard resources.allSatisfy(allowed.contains) else { throw Self.invalidTarget("resource not allowed") }
        if !resources.isEmpty { return allowed.filter(resources.contains) }
        return allowed.isEmpty ? [client.clientID] : allowed
    }

    static func resources(of scope: [String], realm: Realm) -> [String] {
        var resources: [String] = []
        for name in scope {
            for resource in realm.scopes[name]?.resources ?? [] where !resources.contains(resource) {
                resources.append(resource)
            }
        }
        return resources
    }

    /// What a client asks for, in the words of `aud`. A resource that no scope has stays as it is.
    private static func asRegistered(_ asked: [String], realm: Realm) -> [String] {
        let registered = Set(realm.scopes.values.flatMap(\.resources))
        return asked.map { resource in
            registered.contains(resource)
                ? resource : registered.first { ResourceIndicator.areEqual($0, resource) } ?? resource
        }
    }

    static func invalidTarget(_ reason: String) -> TokenError {
        TokenError(.invalidTarget, "The requested resource is not allowed.", reason: reason)
    }

    private static func scope(_ text: String?, realm: Realm, client: Client) throws(TokenError) -> [String] {
        guard let text else { return [] }
        guard text.utf8.count <= maximumScopeBytes else {
            throw TokenError(.invalidRequest, "The scope parameter is too long.", reason: "scope size")
        }
        var names: [String] = []
        for name in text.blankSeparated {
            guard isScopeToken(name.utf8) else { throw TokenError.invalidScope("charset") }
            guard let scope = realm.scopes[name], scope.enabled else { throw TokenError.invalidScope("unknown") }
            if !names.contains(name) { names.append(name) }
        }
        // A scope that is unknown anywhere in the request is reported before one that is forbidden.
        for name in names {
            guard client.mayRequest(scope: name) else {
                throw TokenError(.invalidRequest, "The client may not request this scope.", reason: "scp permission")
            }
            if name == "offline_access", !client.mayUse(.refreshToken) {
                throw TokenError(
                    .invalidRequest, "The client may not request offline_access.",
                    reason: "offline_access without refresh_token")
            }
        }
        return names
    }

    /// `scope-token` of RFC 6749 §3.3.
    private static func isScopeToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }
}

extension TokenError {
    static func invalidScope(_ reason: String) -> TokenError {
        TokenError(.invalidScope, "The requested scope is not available.", reason: reason)
    }
}
