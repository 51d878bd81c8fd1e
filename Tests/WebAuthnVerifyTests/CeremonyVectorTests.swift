import Encoding
import Foundation
import Testing
import WebAuthnVerify

/// `docs/vectors/ceremonies.json`: the bytes as they are, and the step at which each is refused.
@Suite("Ceremonies of the vectors")
struct CeremonyVectorTests {
    private struct File: Decodable {
        let rpId: String
        let origin: String
        let passkeys: [String: Passkey]
        let cases: [Case]
    }

    private struct Passkey: Decodable {
        let id: String
        let userHandle: String
        let publicKey: String
        let signCount: UInt32
        let backupEligible: Bool
        let backupState: Bool

        func record() throws -> CredentialRecord {
            CredentialRecord(
                id: try bytes(id), publicKey: try bytes(publicKey), signCount: signCount,
                backupEligible: backupEligible, backupState: backupState, userHandle: try bytes(userHandle))
        }
    }

    private struct Case: Decodable {
        struct Options: Decodable {
            struct Excluded: Decodable { let id: String }
            let challenge: String
            let excludeCredentials: [Excluded]?
        }
        let name: String
        let `do`: String
        let passkey: String
        let options: Options
        let step: String?
    }

    private static func load() throws -> (file: File, credentials: [[UInt8]]) {
        let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/vectors/ceremonies.json")
        let data = try Data(contentsOf: url)
        let object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let cases = try #require(object?["cases"] as? [[String: Any]])
        let credentials = try cases.map {
            Array(try JSONSerialization.data(withJSONObject: try #require($0["credential"])))
        }
        return (try JSONDecoder().decode(File.self, from: data), credentials)
    }

    @Test func `each case is accepted, or refused at its step`() async throws {
        let (file, credentials) = try Self.load()
        let party = RelyingParty(rpId: file.rpId, origins: [file.origin])
        #expect(file.cases.count >= 12)
        for (vector, credential) in zip(file.cases, credentials) {
            let passkey = try #require(file.passkeys[vector.passkey]).record()
            var step: String?
            do {
                if vector.do == "create" {
                    let made = try await Self.register(vector, credential, party)
                    #expect(
                        made.publicKey == passkey.publicKey && made.signCount == passkey.signCount, "\(vector.name)")
                    #expect(
                        made.id == passkey.id && made.backupEligible == passkey.backupEligible
                            && made.backupState == passkey.backupState, "\(vector.name)")
                } else {
                    try Self.signIn(vector, credential, party, file.passkeys.values.map { try $0.record() })
                }
            } catch let failure as RegistrationFailure {
                step = "\(failure.step)"
            } catch let failure as AuthenticationFailure {
                step = "\(failure.step)"
            }
            #expect(step == vector.step, "\(vector.name)")
        }
    }

    private static func register(
        _ vector: Case, _ credential: [UInt8], _ party: RelyingParty
    ) async throws -> CredentialRecord {
        let ceremony = RegistrationCeremony(
            relyingParty: party, challenge: try bytes(vector.options.challenge),
            pubKeyCredParams: [.es256, .edDSA, .rs256],
            registeredCredentialIds: try (vector.options.excludeCredentials ?? []).map { try bytes($0.id) })
        let response = try RegistrationCeremony.response(parsing: credential.span)
        return try await ceremony.verify(response, at: Ceremonies.instant).credential
    }

    private static func signIn(
        _ vector: Case, _ credential: [UInt8], _ party: RelyingParty, _ kept: [CredentialRecord]
    ) throws {
        let ceremony = AuthenticationCeremony(relyingParty: party, challenge: try bytes(vector.options.challenge))
        let response = try AuthenticationCeremony.response(parsing: credential.span)
        _ = try ceremony.verify(
            response, credential: kept.first { $0.id == response.id } ?? .decoy(for: response))
    }
}

private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.urlDecode(text)) }
