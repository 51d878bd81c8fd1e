import Crypto
import CryptoExtras

extension CredentialPublicKey {
    /// Decodes a COSE key that fills `bytes` (RFC 9052 §7, WebAuthn L3 §5.8.5).
    ///
    /// Checked: `kty`, `alg` and `crv` agree, no parameter is missing, surplus or repeated, lengths are exact, points
    /// are on their curve (Ed25519: canonical and not of small order), RSA has 2048 to 4096 bits and an odd exponent
    /// from 3 up.
    ///
    /// - Parameters:
    ///   - bytes: `credentialPublicKey` as in attested credential data.
    ///   - policy: the algorithms accepted.
    /// - Throws: ``COSEKeyError``.
    public init(decoding bytes: Span<UInt8>, policy: COSEAlgorithmPolicy = .standard) throws(COSEKeyError) {
        var reader = CBORReader(bytes)
        try self.init(&reader, policy: policy)
        do throws(CBORError) { try reader.finish() } catch { throw .cbor(error) }
    }

    /// Decodes the COSE key at the reader's position and leaves the reader behind it.
    init(_ reader: inout CBORReader, policy: COSEAlgorithmPolicy) throws(COSEKeyError) {
        let parameters = try COSEKeyParameters(&reader)
        guard let number = parameters.alg, let kty = parameters.kty else { throw .missingParameter }
        let alg = COSEAlgorithmIdentifier(rawValue: number)
        switch alg {
        case .es256, .esp256, .es384, .esp384, .es512, .esp512, .es256K:
            guard kty == KeyType.ec2.rawValue else { throw .keyTypeMismatch }
        case .edDSA, .ed25519, .ed448:
            guard kty == KeyType.okp.rawValue else { throw .keyTypeMismatch }
        case .rs1, .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
            guard kty == KeyType.rsa.rawValue else { throw .keyTypeMismatch }
        case .mlDSA65, .mlDSA87:
            guard kty == KeyType.akp.rawValue else { throw .keyTypeMismatch }
        case .mlDSA44:
            throw .unsupportedAlgorithm
        default:
            throw .unknownAlgorithm
        }
        guard policy.accepted.contains(alg) else { throw .algorithmNotAccepted }
        let bytes = reader.bytes
        algorithm = alg
        material = try KeyMaterial(alg, parameters, bytes)
    }
}

extension KeyMaterial {
    private typealias Curve = CredentialPublicKey.Curve

    /// The key of algorithm `alg`, whose key type has been checked.
    fileprivate init(
        _ alg: COSEAlgorithmIdentifier, _ parameters: COSEKeyParameters, _ bytes: Span<UInt8>
    ) throws(COSEKeyError) {
        switch alg {
        case .es256, .esp256: self = try Self.p256(parameters, bytes)
        case .es384, .esp384: self = try Self.p384(parameters, bytes)
        case .es512, .esp512: self = try Self.p521(parameters, bytes)
        case .es256K: self = try Self.secp256k1(parameters, bytes)
        case .edDSA, .ed25519: self = try Self.ed25519(parameters, bytes)
        case .ed448: self = try Self.ed448(parameters, bytes)
        case .mlDSA65: self = try Self.mlDSA(parameters, bytes) { (pub) in .mlDSA65(try .init(rawRepresentation: pub)) }
        case .mlDSA87: self = try Self.mlDSA(parameters, bytes) { (pub) in .mlDSA87(try .init(rawRepresentation: pub)) }
        default: self = try Self.rsa(alg, parameters, bytes)
        }
    }

    /// The uncompressed point 04 ‖ x ‖ y (SEC 1 §2.3.3). WebAuthn forbids the compressed form, where y is a boolean.
    private static func point(
        _ parameters: COSEKeyParameters, _ bytes: Span<UInt8>, curve: Curve, width: Int
    ) throws(COSEKeyError) -> [UInt8] {
        guard let crv = parameters.first, let x = parameters.second, let y = parameters.third else {
            throw .missingParameter
        }
        guard crv == .integer(curve.rawValue) else { throw .curveMismatch }
        guard case .bytes(let x) = x, case .bytes(let y) = y else { throw .wrongParameterType }
        guard x.count == width, y.count == width else { throw .wrongLength }
        var point: [UInt8] = []
        point.reserveCapacity(1 + 2 * width)
        point.append(0x04)
        for index in x { point.append(bytes[index]) }
        for index in y { point.append(bytes[index]) }
        return point
    }

    private static func p256(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let point = try point(parameters, bytes, curve: .p256, width: 32)
        do { return .p256(try .init(x963Representation: point)) } catch { throw .invalidPoint }
    }

    private static func p384(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let point = try point(parameters, bytes, curve: .p384, width: 48)
        do { return .p384(try .init(x963Representation: point)) } catch { throw .invalidPoint }
    }

    private static func p521(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let point = try point(parameters, bytes, curve: .p521, width: 66)
        do { return .p521(try .init(x963Representation: point)) } catch { throw .invalidPoint }
    }

    private static func secp256k1(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let point = try point(parameters, bytes, curve: .secp256k1, width: 32)
        guard let key = OpenSSLPublicKey(secp256k1Point: point) else { throw .invalidPoint }
        return .secp256k1(key)
    }

    /// The raw key of an octet key pair (RFC 8032 encoding).
    private static func octets(
        _ parameters: COSEKeyParameters, _ bytes: Span<UInt8>, curve: Curve, width: Int
    ) throws(COSEKeyError) -> [UInt8] {
        guard let crv = parameters.first, let x = parameters.second else { throw .missingParameter }
        guard parameters.third == nil else { throw .unexpectedParameter }
        guard crv == .integer(curve.rawValue) else { throw .curveMismatch }
        guard case .bytes(let x) = x else { throw .wrongParameterType }
        guard x.count == width else { throw .wrongLength }
        return bytes.array(x)
    }

    private static func ed25519(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let raw = try octets(parameters, bytes, curve: .ed25519, width: 32)
        guard Ed25519Point.isAcceptable(raw) else { throw .invalidPoint }
        do { return .ed25519(try .init(rawRepresentation: raw)) } catch { throw .invalidPoint }
    }

    private static func ed448(_ parameters: COSEKeyParameters, _ bytes: Span<UInt8>) throws(COSEKeyError) -> Self {
        let raw = try octets(parameters, bytes, curve: .ed448, width: 57)
        guard let key = OpenSSLPublicKey(ed448: raw) else { throw .invalidPoint }
        return .ed448(key)
    }

    private static func mlDSA(
        _ parameters: COSEKeyParameters, _ bytes: Span<UInt8>, _ make: ([UInt8]) throws -> Self
    ) throws(COSEKeyError) -> Self {
        guard let pub = parameters.first else { throw .missingParameter }
        guard parameters.second == nil, parameters.third == nil else { throw .unexpectedParameter }
        guard case .bytes(let pub) = pub else { throw .wrongParameterType }
        // The initialiser refuses every length but 1952 (ML-DSA-65) and 2592 (ML-DSA-87).
        do { return try make(bytes.array(pub)) } catch { throw .wrongLength }
    }

    private static func rsa(
        _ alg: COSEAlgorithmIdentifier, _ parameters: COSEKeyParameters, _ bytes: Span<UInt8>
    ) throws(COSEKeyError) -> Self {
        guard let n = parameters.first, let e = parameters.second else { throw .missingParameter }
        guard parameters.third == nil else { throw .unexpectedParameter }
        guard case .bytes(let n) = n, case .bytes(let e) = e else { throw .wrongParameterType }
        let modulus = bytes.array(n), exponent = bytes.array(e)
        try RSAParameters.check(modulus: modulus, exponent: exponent)
        guard let scheme = RSAScheme(alg) else { throw .unknownAlgorithm }
        do { return .rsa(try .init(n: modulus, e: exponent), scheme) } catch { throw .invalidModulus }
    }
}
