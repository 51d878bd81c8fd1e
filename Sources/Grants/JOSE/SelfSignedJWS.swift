/// The header of a JWS that is signed by the key in it (`jwk`, RFC 7515 §4.1.3): DPoP proofs and the statements of
/// devices. What it says depends on its text alone.
struct SelfSignedHeader: Sendable {
    /// `typ` with ASCII letters in lower case; empty where the header has none.
    let type: String
    let algorithm: ClientKey.Algorithm
    let key: PublicJWK

    /// Why a header is refused; the raw value is for the log.
    enum Refusal: String, Error {
        case format
        case meaning = "crit or b64"
        case algorithm = "alg"
        case noKey = "jwk"
        case privateKey = "private key"
        case algorithmOfKey = "alg of the key"
        case useOfKey = "use of the key"
        case key
    }

    /// Refuses what changes the meaning of a header, unknown algorithms, private keys, and keys that say that they are
    /// for something else than this signature.
    init(_ jws: JWS) throws(Refusal) {
        guard let header = jws.header() else { throw .format }
        guard !header.hasExtension else { throw .meaning }
        guard let algorithm = header.text("alg").flatMap(ClientKey.Algorithm.init) else { throw .algorithm }
        guard let jwk = header.object("jwk") else { throw .noKey }
        guard PublicJWK.privateMembers.allSatisfy({ !jwk.has($0) }) else { throw .privateKey }
        guard jwk.isAbsent("alg", or: algorithm.rawValue) else { throw .algorithmOfKey }
        guard jwk.isAbsent("use", or: "sig") else { throw .useOfKey }
        guard let key = PublicJWK(jwk, algorithm) else { throw .key }
        type = String(
            decoding: (header.text("typ") ?? "").utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self)
        self.algorithm = algorithm
        self.key = key
    }

    /// Whether the key made the signature.
    func hasSigned(_ jws: JWS) -> Bool {
        key.material.isValidJWSSignature(jws.signature, for: jws.input)
    }
}

/// A statement that a device signed with the key in its own header (ES256): who said something, and what. Whether the
/// key is a trusted device's, only the database knows.
struct SelfSignedJWS {
    /// The key: its thumbprint, 32 bytes.
    let thumbprint: [UInt8]
    /// `typ` with ASCII letters in lower case; empty where the header has none.
    let type: String
    let claims: JOSEObject

    /// The longest statement.
    static let maximumBytes = 4096

    /// `nil` unless the signature holds.
    init?(_ text: String) {
        guard let jws = JWS(text, maximumBytes: Self.maximumBytes), let claims = JOSEObject(jws.payload),
            let header = try? SelfSignedHeader(jws), header.algorithm == .es256, header.hasSigned(jws)
        else { return nil }
        thumbprint = header.key.thumbprint
        type = header.type
        self.claims = claims
    }
}
