import Encoding

/// The client credentials a request carries (RFC 6749 §2.3.1): in the `Authorization` header, in the body, or none.
public struct PresentedCredentials: Sendable, Equatable {
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
                let clientID = try? FormParameters.decode(decoded.span.extracting(..<colon)),
                let secret = try? FormParameters.decode(decoded.span.extracting((colon + 1)...)),
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

    /// The `client_id` of the header.
    public var clientID: String? {
        guard case .basic(let basic) = header else { return nil }
        return basic.clientID
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
