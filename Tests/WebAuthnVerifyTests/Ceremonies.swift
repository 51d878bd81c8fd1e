import Foundation
import SoftwareAuthenticator
import WebAuthnVerify

/// Ceremonies of a software authenticator with one relying party: valid as they are, and there to be spoiled.
enum Ceremonies {
    static let rpId = "login.example"
    static let origin = "https://login.example"
    static let challenge = (0..<32).map { UInt8($0) }
    static let userHandle: [UInt8] = Array("user-handle".utf8)
    static let instant = Date(timeIntervalSince1970: 1_800_000_000)
    static let relyingParty = RelyingParty(rpId: rpId, origins: [origin])

    /// One authority for all tests: making keys is what takes time.
    static let authority = Result { try AttestationAuthority() }

    static func authenticator() throws -> SoftwareAuthenticator {
        try SoftwareAuthenticator(authority: try authority.get())
    }

    /// RSA keys take seconds to make in debug builds, so there is one per algorithm.
    private static let rsaKeys: [COSEAlgorithmIdentifier: Result<SoftwareKey, any Error>] = {
        guard let first = try? SoftwareKey(.rs256), case .rsa(let key, _) = first else { return [:] }
        var keys: [COSEAlgorithmIdentifier: Result<SoftwareKey, any Error>] = [:]
        for alg: COSEAlgorithmIdentifier in [.rs1, .rs256, .rs384, .rs512, .ps256, .ps384, .ps512] {
            keys[alg] = .success(.rsa(key, alg))
        }
        return keys
    }()

    static func key(_ alg: COSEAlgorithmIdentifier) throws -> SoftwareKey {
        try rsaKeys[alg]?.get() ?? SoftwareKey(alg)
    }
}

/// An authentication with every input at hand.
struct AuthenticationScene {
    var ceremony: AuthenticationCeremony
    var template: AssertionTemplate
    var record: CredentialRecord
    var afterSigning: (inout AuthenticationResponseJSON) -> Void = { _ in }

    init(_ algorithm: COSEAlgorithmIdentifier = .es256) throws {
        let authenticator = try Ceremonies.authenticator()
        let credential = try authenticator.makeCredential(
            rpId: Ceremonies.rpId, userHandle: Ceremonies.userHandle, algorithm: algorithm,
            key: Ceremonies.key(algorithm))
        ceremony = AuthenticationCeremony(
            relyingParty: Ceremonies.relyingParty, challenge: Ceremonies.challenge, algorithms: .extended)
        template = authenticator.assertion(by: credential, challenge: Ceremonies.challenge, origin: Ceremonies.origin)
        record = try credential.record(flags: authenticator.flags)
    }

    @discardableResult
    func verify() throws -> VerifiedAuthentication {
        var response = try template.response()
        afterSigning(&response)
        return try ceremony.verify(response, credential: record)
    }
}

/// A registration with every input at hand.
struct RegistrationScene {
    var ceremony: RegistrationCeremony
    var template: RegistrationTemplate
    var afterAttesting: (inout RegistrationResponseJSON) -> Void = { _ in }

    init(
        _ format: AttestationStatementFormat = .none, algorithm: COSEAlgorithmIdentifier = .es256,
        selfAttested: Bool = false
    ) throws {
        let authenticator = try Ceremonies.authenticator()
        let credential = try authenticator.makeCredential(
            rpId: Ceremonies.rpId, userHandle: Ceremonies.userHandle, algorithm: algorithm,
            key: Ceremonies.key(algorithm))
        ceremony = RegistrationCeremony(
            relyingParty: Ceremonies.relyingParty, challenge: Ceremonies.challenge,
            pubKeyCredParams: COSEAlgorithmPolicy.extended.accepted,
            attestation: AttestationPolicy(trustAnchors: [format: [authenticator.authority.root]]))
        template = try authenticator.registration(
            of: credential, challenge: Ceremonies.challenge, origin: Ceremonies.origin, format: format,
            selfAttested: selfAttested)
    }

    @discardableResult
    func verify() async throws -> VerifiedRegistration {
        var response = try template.response()
        afterAttesting(&response)
        return try await ceremony.verify(response, at: Ceremonies.instant)
    }
}
