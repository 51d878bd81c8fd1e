import Encoding
import Crypto
import SwiftASN1
import X509

extension AttestationStatement {
    /// Android SafetyNet attestation (WebAuthn L3 §8.5): a JWS in which Google vouches for the device.
    ///
    /// The service was switched off in 2025; the format is verified for the credentials that once came with it.
    /// `timestampMs` is not compared: the challenge inside `nonce` already bounds the age of the response.
    func verifyAndroidSafetyNet() throws(AttestationError) -> AttestationType {
        guard attStmt.hasOnly("ver", "response"), let version = attStmt["ver"]?.textString, !version.isEmpty,
            let response = attStmt["response"]?.byteString
        else { throw .malformedStatement }
        guard let jws = SafetyNetResponse(parsing: response) else { throw .malformedStatement }
        guard jws.nonce == Array(SHA256.hash(data: signedData)) else { throw .nonceMismatch }
        guard jws.ctsProfileMatch else { throw .certificateRequirements }
        var certificates: [AttestationCertificate] = []
        for der in jws.x5c { certificates.append(try AttestationCertificate(der)) }
        guard let leaf = certificates.first else { throw .malformedStatement }
        guard leaf.names("attest.android.com") else { throw .certificateRequirements }
        guard let key = leaf.key(for: jws.algorithm) else { throw .algorithmMismatch }
        guard key.isValidSignature(jws.signature, for: jws.signingInput) else { throw .invalidSignature }
        return trustPath(certificates)
    }
}

extension AttestationCertificate {
    /// True if the certificate was issued to this host name, exactly.
    fileprivate func names(_ host: String) -> Bool {
        guard let found = `extension`(.X509ExtensionID.subjectAlternativeName),
            let names = try? SubjectAlternativeNames(found)
        else { return subject(.RDNAttributeType.commonName) == [host] }
        return names.contains(.dnsName(host))
    }
}

/// The JWS of a SafetyNet response in compact serialisation (RFC 7515 §7.1), read but not verified.
private struct SafetyNetResponse {
    var algorithm: COSEAlgorithmIdentifier
    var x5c: [[UInt8]]
    var nonce: [UInt8]
    var ctsProfileMatch = false
    var signature: [UInt8]
    var signingInput: [UInt8]

    init?(parsing response: [UInt8]) {
        let parts = response.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
        guard response.count <= CollectedClientData.maximumLength, parts.count == 3,
            let header = Base64.urlDecode(parts[0]), let payload = Base64.urlDecode(parts[1]),
            let signature = Base64.urlDecode(parts[2])
        else { return nil }
        self.signature = signature
        signingInput = parts[0] + [UInt8(ascii: ".")] + parts[1]
        do throws(JSONError) {
            (algorithm, x5c) = try Self.header(header)
            (nonce, ctsProfileMatch) = try Self.payload(payload)
        } catch {
            return nil
        }
    }

    private static func header(_ bytes: [UInt8]) throws(JSONError) -> (COSEAlgorithmIdentifier, [[UInt8]]) {
        try JSONReader.validate(bytes.span, maximumLength: CollectedClientData.maximumLength)
        var json = JSONReader(validated: bytes.span)
        var alg: String?
        var x5c: [[UInt8]] = []
        var members = try json.object()
        while let key = try json.key(of: &members) {
            switch key {
            case "alg": alg = try json.string()
            case "x5c": for text in try json.strings() { x5c.append(try base64(text)) }
            default: _ = try json.skip(in: members)
            }
        }
        try json.finish()
        // The service signed with RS256 and nothing else.
        guard alg == "RS256" else { throw .unexpectedType }
        return (.rs256, x5c)
    }

    private static func payload(_ bytes: [UInt8]) throws(JSONError) -> ([UInt8], Bool) {
        try JSONReader.validate(bytes.span, maximumLength: CollectedClientData.maximumLength)
        var json = JSONReader(validated: bytes.span)
        var nonce: [UInt8]?, ctsProfileMatch = false
        var members = try json.object()
        while let key = try json.key(of: &members) {
            switch key {
            case "nonce": nonce = try base64(try json.string())
            case "ctsProfileMatch": ctsProfileMatch = try json.boolean()
            default: _ = try json.skip(in: members)
            }
        }
        try json.finish()
        guard let nonce else { throw .unexpectedType }
        return (nonce, ctsProfileMatch)
    }

    /// Base64 with padding (RFC 4648 §4), which `x5c` and `nonce` use.
    private static func base64(_ text: String) throws(JSONError) -> [UInt8] {
        guard let decoded = Base64.decode(text) else { throw .invalidBase64URL }
        return decoded
    }
}
