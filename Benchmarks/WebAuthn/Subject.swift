import Encoding
import CFIDO2
import Crypto
import FoundationEssentials
import SoftwareAuthenticator
import WebAuthnVerify

/// One assertion and the ways to check it.
struct Subject {
    enum Kind: String, CaseIterable {
        /// Key from 65 bytes, signature from DER, one verification. The yardstick, so it comes first.
        case bare
        /// Every step of §7.2, from the decoded response.
        case full
        /// The same, and the JSON serialisation decoded.
        case fullFromJSON
        /// libfido2's `fido_assert_verify` with what has to be set up for it.
        case libfido2

        var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    struct Failed: Error {}

    let ceremony: AuthenticationCeremony
    let record: CredentialRecord
    let response: AuthenticationResponseJSON
    let json: [UInt8]
    private let point: [UInt8]
    private let message: [UInt8]
    private let rpId = "login.example", origin = "https://login.example"

    init() throws {
        let key = P256.Signing.PrivateKey()
        let authenticator = try SoftwareAuthenticator()
        let credential = try authenticator.makeCredential(
            rpId: rpId, userHandle: [UInt8](repeating: 7, count: 32), key: .p256(key))
        let challenge = [UInt8](repeating: 0xa5, count: 32)
        ceremony = AuthenticationCeremony(
            relyingParty: RelyingParty(rpId: rpId, origins: [origin]), challenge: challenge)
        record = try credential.record(flags: authenticator.flags)
        response = try authenticator.assertion(by: credential, challenge: challenge, origin: origin).response()
        json = Array(response.json().utf8)
        point = Array(key.publicKey.x963Representation)
        message = response.authenticatorData + Array(SHA256.hash(data: response.clientDataJSON))
    }

    @inline(never)
    func run(_ kind: Kind) throws {
        switch kind {
        case .bare:
            let key = try P256.Signing.PublicKey(x963Representation: point)
            let signature = try P256.Signing.ECDSASignature(derRepresentation: response.signature)
            guard key.isValidSignature(signature, for: SHA256.hash(data: message)) else { throw Failed() }
        case .full:
            guard try ceremony.verify(response, credential: record).userVerified else { throw Failed() }
        case .fullFromJSON:
            let parsed = try AuthenticationCeremony.response(parsing: json.span)
            guard try ceremony.verify(parsed, credential: record).userVerified else { throw Failed() }
        case .libfido2:
            guard libfido2() else { throw Failed() }
        }
    }

    private func libfido2() -> Bool {
        var assertion = fido_assert_new()
        var key = es256_pk_new()
        defer {
            fido_assert_free(&assertion)
            es256_pk_free(&key)
        }
        let raw = Array(point.dropFirst())
        return es256_pk_from_ptr(key, raw, raw.count) == FIDO_OK
            && fido_assert_set_rp(assertion, rpId) == FIDO_OK
            && fido_assert_set_clientdata(assertion, response.clientDataJSON, response.clientDataJSON.count) == FIDO_OK
            && fido_assert_set_count(assertion, 1) == FIDO_OK
            && fido_assert_set_authdata_raw(
                assertion, 0, response.authenticatorData, response.authenticatorData.count) == FIDO_OK
            && fido_assert_set_sig(assertion, 0, response.signature, response.signature.count) == FIDO_OK
            && fido_assert_set_up(assertion, FIDO_OPT_TRUE) == FIDO_OK
            && fido_assert_set_uv(assertion, FIDO_OPT_TRUE) == FIDO_OK
            && fido_assert_verify(assertion, 0, COSE_ES256, UnsafeRawPointer(key)) == FIDO_OK
    }

    /// The same assertion for `assertions.py`, where `POSTERN_BENCH_EXCHANGE` says where to.
    func writeForPython() throws {
        guard let path = ProcessInfo.processInfo.environment["POSTERN_BENCH_EXCHANGE"] else { return }
        let document = """
            {"credential":\(String(decoding: json, as: UTF8.self)),"challenge":"\(Base64.urlEncode(ceremony.challenge))",
            "publicKey":"\(Base64.urlEncode(record.publicKey))","rpId":"\(rpId)","origin":"\(origin)"}
            """
        try Data(document.utf8).write(to: URL(filePath: path))
    }
}
