import Encoding
import Persistence

/// `auth_req_id` (CIBA Core 1.0 §7.3): what a client polls with.
///
/// Text: `pbr_` + base64url of the sealed fields: id of the request, client, end, and what the tokens will be for. So
/// a poll needs no lookup before its one statement, and an id is told to be past its time when its row is gone.
package struct AuthenticationRequestHandle: Sendable, Equatable {
    static let prefix = "pbr_"
    private static let maximumBytes = 1024
    private static let fixedCount = 16 + 16 + 8

    /// The row's id.
    let id: UUIDValue
    /// The client's row key.
    let client: UUIDValue
    /// Milliseconds since the epoch, by the database clock.
    private let end: UInt64
    let scope: [String]
    let resources: [String]
    /// `acr_values`, as far as an approval can meet them.
    let contexts: [AuthenticationContext]

    /// Seconds since the epoch.
    var expiresAt: Double { Double(end) / 1000 }

    /// - Parameter expiresAt: seconds since the epoch.
    init(
        id: UUIDValue, client: UUIDValue, expiresAt: Double, scope: [String], resources: [String],
        contexts: [AuthenticationContext]
    ) {
        self.id = id
        self.client = client
        end = UInt64(exactly: (expiresAt * 1000).rounded(.down)) ?? 0
        self.scope = scope
        self.resources = resources
        self.contexts = contexts
    }

    /// Opens a presented handle; `nil` when this server did not make it for the realm.
    init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= Self.maximumBytes, presented.hasPrefix(Self.prefix),
            let sealed = Base64.urlDecode(presented.dropFirst(Self.prefix.count)),
            let fields = try? keyring.open(sealed, for: .authenticationRequest, realm: realm, aad: Self.aad(realm)),
            fields.count >= Self.fixedCount, let id = UUIDValue(bytes: fields[..<16]),
            let client = UUIDValue(bytes: fields[16..<32]),
            let end = fields[32..<40].bigEndianInteger(as: UInt64.self),
            let text = String(validating: fields[40...], as: UTF8.self)
        else { return nil }
        // Neither a scope nor a URI has a blank.
        let lists = text.split(separator: "\n", omittingEmptySubsequences: false).map {
            $0.split(separator: " ").map(String.init)
        }
        guard lists.count == 3 else { return nil }
        self.id = id
        self.client = client
        self.end = end
        scope = lists[0]
        resources = lists[1]
        contexts = lists[2].compactMap(AuthenticationContext.init)
    }

    /// - Throws: `invalid_request` for more than fits.
    func text(realm: UUIDValue, keyring: Keyring) throws(TokenError) -> String {
        let lists = [scope, resources, contexts.map(\.rawValue)].map { $0.joined(separator: " ") }
        let fields = id.bytes + client.bytes + bigEndianBytes(end) + Array(lists.joined(separator: "\n").utf8)
        guard let sealed = try? keyring.seal(fields, for: .authenticationRequest, realm: realm, aad: Self.aad(realm))
        else { throw .unavailable("seal") }
        let text = Self.prefix + Base64.urlEncode(sealed)
        guard text.utf8.count <= Self.maximumBytes else {
            throw TokenError(.invalidRequest, "The scope and the resources are too long.", reason: "handle size")
        }
        return text
    }

    private static func aad(_ realm: UUIDValue) -> [UInt8] {
        Array("auth_req_id".utf8) + realm.bytes
    }
}
