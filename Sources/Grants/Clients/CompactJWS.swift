import Encoding
import WebAuthnVerify

/// A JWS in compact form (RFC 7515 §7.1) from a caller. Its signature is not verified yet.
///
/// Read: `alg`, `kid`, `typ`. Refused: `crit` and `b64`, which would change what the rest means. Never used: `jwk`,
/// `jku`, `x5c`, `x5u`: keys come from the registration alone.
package struct CompactJWS {
    package let algorithm: ClientKey.Algorithm
    package let kid: String?
    package let typ: String?
    package let payload: [UInt8]
    private let input: [UInt8]
    private let signature: [UInt8]

    private static let maximumBytes = 8192

    /// `nil` for anything that is not three parts of strict base64url with a JSON header and an algorithm accepted
    /// here.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maximumBytes else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty, let header = Base64.urlDecode(parts[0]),
            let payload = Base64.urlDecode(parts[1]), let signature = Base64.urlDecode(parts[2]),
            let read = try? Self.read(header), let algorithm = read.alg.flatMap(ClientKey.Algorithm.init)
        else { return nil }
        self.algorithm = algorithm
        kid = read.kid
        typ = read.typ
        self.payload = payload
        self.signature = signature
        input = Array("\(parts[0]).\(parts[1])".utf8)
    }

    /// Whether one of the keys made the signature: the one the header names, or any that has no name.
    package func isSigned(by keys: [ClientKey]) -> Bool {
        keys.contains { key in
            (kid == nil || key.kid == nil || key.kid == kid) && key.isValidSignature(signature, for: input, algorithm)
        }
    }

    private static func read(_ bytes: [UInt8]) throws(JSONError) -> (alg: String?, kid: String?, typ: String?) {
        try JSONReader.validate(bytes.span, maximumLength: maximumBytes)
        var json = JSONReader(validated: bytes.span)
        var members = try json.object()
        var (alg, kid, typ): (String?, String?, String?) = (nil, nil, nil)
        while let name = try json.key(of: &members) {
            switch name {
            case "alg": alg = try json.string()
            case "kid": kid = try json.string()
            case "typ": typ = try json.string()
            case "crit", "b64": throw .unexpectedType
            default: _ = try json.skip(in: members)
            }
        }
        try json.finish()
        return (alg, kid, typ)
    }
}
