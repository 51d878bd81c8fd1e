import Crypto

/// What a relying party expects of every ceremony: its RP ID and the places it is used from.
public struct RelyingParty: Sendable, Equatable {
    /// SHA-256 of the RP ID, 32 bytes.
    public var rpIdHash: [UInt8]
    /// The accepted origins, compared byte for byte (WebAuthn L3 §13.4.9): web origins as browsers serialise them and
    /// `android:apk-key-hash:…` of native apps.
    public var origins: Set<String>
    /// Whether ceremonies may run in a frame of another origin.
    public var embedding: Embedding

    /// Frames of other origins (`crossOrigin`, `topOrigin`).
    public enum Embedding: Sendable, Equatable {
        /// Never; the default.
        case refused
        /// Within these top-level origins, compared byte for byte. A client that does not send `topOrigin` is accepted.
        case within(topOrigins: Set<String>)
    }

    /// A relying party known by the hash of its RP ID.
    public init(rpIdHash: [UInt8], origins: Set<String>, embedding: Embedding = .refused) {
        self.rpIdHash = rpIdHash
        self.origins = origins
        self.embedding = embedding
    }

    /// A relying party known by its RP ID, a domain in lower case.
    public init(rpId: String, origins: Set<String>, embedding: Embedding = .refused) {
        self.init(rpIdHash: Array(SHA256.hash(data: Array(rpId.utf8))), origins: origins, embedding: embedding)
    }

    /// Whether the relying party requires user verification.
    public enum UserVerificationRequirement: Sendable { case required, preferred, discouraged }

    func accepts(origin: String) -> Bool {
        Self.contains(origins, origin)
    }

    func accepts(crossOrigin: Bool) -> Bool {
        !crossOrigin || embedding != .refused
    }

    func accepts(topOrigin: String?) -> Bool {
        guard let topOrigin else { return true }
        return switch embedding {
        case .refused: false
        case .within(let topOrigins): Self.contains(topOrigins, topOrigin)
        }
    }

    /// Bytes, not `String` equality, which holds canonically equivalent texts for the same.
    private static func contains(_ set: Set<String>, _ text: String) -> Bool {
        set.contains { $0.utf8.elementsEqual(text.utf8) }
    }
}

/// What happens to authenticator extension outputs (WebAuthn L3 §7.1 step 28, §7.2 step 23).
public enum ExtensionPolicy: Sendable, Equatable {
    /// Ignored by the verification and handed to the caller.
    case tolerated
    /// Refused unless their identifiers are among these.
    case only(Set<String>)

    func accepts(_ extensions: CBORMap?) -> Bool {
        switch self {
        case .tolerated: true
        case .only(let requested):
            (extensions?.entries ?? []).allSatisfy { $0.key.textString.map(requested.contains) ?? false }
        }
    }
}
