import Crypto

/// The client credentials a request carries (RFC 6749 §2.3.1): in the `Authorization` header, in the body, or none.
public struct ClientCredentials: Sendable, Equatable {
    /// `client_id` and `client_secret` of an `Authorization: Basic` header, form-decoded.
    public struct Basic: Sendable, Equatable {
        let clientID: String
        let secret: String

        /// The two halves of the header, already decoded.
        public init(clientID: String, secret: String) {
            self.clientID = clientID
            self.secret = secret
        }

        /// Decodes the credentials of a `Basic` header (RFC 7617 §2; the halves are form-encoded, RFC 6749 §2.3.1).
        /// - Returns: `nil` when it is not base64 of `id:secret` in UTF-8.
        public init?(decoding credentials: some StringProtocol) {
            guard credentials.utf8.count <= 4096, let decoded = Base64.decode(credentials),
                let colon = decoded.firstIndex(of: UInt8(ascii: ":")),
                let clientID = try? FormParameters.decode(decoded[..<colon]),
                let secret = try? FormParameters.decode(decoded[(colon + 1)...]),
                !clientID.isEmpty
            else { return nil }
            self.init(clientID: clientID, secret: secret)
        }
    }

    /// What the `Authorization` header held.
    public enum Header: Sendable, Equatable {
        /// No header.
        case none
        /// Usable `Basic` credentials.
        case basic(Basic)
        /// A header that is not usable `Basic`: answered `invalid_client` like a wrong secret.
        case unusable
    }

    let header: Header
    private let forwardedFor: String?

    /// Wraps what the request carried.
    /// - Parameter forwardedFor: the user's address that the client names (`Postern-Forwarded-For`), as limits count
    ///   it.
    public init(header: Header, forwardedFor: String? = nil) {
        self.header = header
        self.forwardedFor = forwardedFor
    }

    /// The user's address that an authenticated client names. Only a confidential client with the permission
    /// `cap:trusted-forwarder` and `Basic` credentials is believed.
    public func forwardedSource(by client: Client) -> String? {
        guard let forwardedFor, case .basic = header, client.isConfidential,
            client.permissions.contains("cap:trusted-forwarder")
        else { return nil }
        return forwardedFor
    }
}

extension Realm {
    /// Authenticates the client of a request by `client_id` and secret (RFC 6749 §2.3.1).
    ///
    /// - Throws: `invalid_request` for two credentials, else `invalid_client` with one text for unknown, disabled,
    ///   wrong or missing secret and a secret sent by a public client.
    public func authenticate(
        _ form: FormParameters, _ credentials: ClientCredentials
    ) throws(TokenError) -> Client {
        let (clientID, secret) = try identity(form, credentials)
        guard let clientID else { throw Self.invalidClient("client_id is missing") }
        let client = clients[clientID]
        // The comparison runs for unknown clients too, so that time does not tell them apart.
        let secretMatches = Self.matches(secret ?? "", client?.secretHashes ?? [])
        guard let client, client.enabled else { throw Self.invalidClient("unknown or disabled") }
        if client.isConfidential {
            guard secret != nil, secretMatches else { throw Self.invalidClient("secret") }
        } else if secret != nil {
            throw Self.invalidClient("secret from a public client")
        }
        return client
    }

    private func identity(
        _ form: FormParameters, _ credentials: ClientCredentials
    ) throws(TokenError) -> (clientID: String?, secret: String?) {
        guard form["client_assertion"] == nil, form["client_assertion_type"] == nil else {
            throw Self.invalidClient("client_assertion")
        }
        switch credentials.header {
        case .none:
            return (form["client_id"], form["client_secret"])
        case .unusable:
            throw Self.invalidClient("authorization header")
        case .basic(let basic):
            guard form["client_secret"] == nil else {
                throw TokenError(.invalidRequest, "Use one way to authenticate the client.", reason: "two credentials")
            }
            guard form["client_id"].map({ $0 == basic.clientID }) ?? true else {
                throw TokenError(
                    .invalidRequest, "client_id differs from the authenticated client.", reason: "two clients")
            }
            return (basic.clientID, basic.secret.isEmpty ? nil : basic.secret)
        }
    }

    static func invalidClient(_ reason: String) -> TokenError {
        TokenError(.invalidClient, "Client authentication failed.", reason: reason)
    }

    /// Compares in constant time against the stored hashes, or against a dummy when there is none.
    private static func matches(_ secret: String, _ hashes: [[UInt8]]) -> Bool {
        let presented = Array(SHA256.hash(data: Array(secret.utf8)))
        var matched = false
        for hash in hashes.isEmpty ? [[UInt8](repeating: 0, count: 32)] : hashes
        where constantTimeEqual(presented, hash) {
            matched = true
        }
        return matched
    }
}
