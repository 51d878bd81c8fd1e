import Foundation
import SoftwareAuthenticator
import Testing
import WebAuthnFuzzTargets
import WebAuthnVerify

@Suite("Fuzz corpora")
struct CorpusTests {
    /// `Fuzz/Corpus/<target>/`, beside the package manifest.
    static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz/Corpus")

    @Test(arguments: FuzzTarget.allCases)
    func `every input of a corpus is handled, and quickly`(_ target: FuzzTarget) throws {
        let directory = Self.directory.appendingPathComponent(target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        let elapsed = try ContinuousClock().measure {
            for file in files {
                let problem = target.run(Array(try Data(contentsOf: file)))
                #expect(problem == nil, "\(file.lastPathComponent)")
            }
        }
        print("corpus \(target.rawValue): \(files.count) inputs replayed in \(elapsed)")
    }

    /// Writes the seeds anew: `POSTERN_WRITE_CORPUS=1 swift test --filter CorpusTests`.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["POSTERN_WRITE_CORPUS"] != nil))
    func `seeds are written`() throws {
        func write(_ target: FuzzTarget, _ name: String, _ bytes: [UInt8]) throws {
            let directory = Self.directory.appendingPathComponent(target.rawValue)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try Data(bytes).write(to: directory.appendingPathComponent("seed-\(name)"))
        }
        let assertion = try #require(try FuzzScene.assertion()?.response())
        try write(.assertion, "es256", Array(assertion.json().utf8))
        try write(.authenticatorData, "assertion", assertion.authenticatorData)
        try write(.clientDataJSON, "get", assertion.clientDataJSON)
        try write(
            .clientDataJSON, "full",
            Array(
                #"{"type":"a","challenge":"\u0041","origin":"o","crossOrigin":true,"topOrigin":"t","tokenBinding":{"status":"present"},"x":[1.5e3,null,{"y":"\ud83d\ude00"}]}"#
                    .utf8))
        try write(.cbor, "items", hex("84a3613801fb3ff00000000000002080f4f6f7f97e003863"))
        for (format, algorithm, selfAttested) in Self.combinations {
            let registration = try FuzzScene.registration(
                format, algorithm, selfAttested: selfAttested, key: Ceremonies.key(algorithm)
            ).response()
            let name = "\(format.rawValue)\(selfAttested ? "-self" : "")\(algorithm.rawValue)"
            let object = try AttestationObject(parsing: registration.attestationObject.span)
            try write(.attestationObject, name, registration.attestationObject)
            try write(.registration, name, Array(registration.json().utf8))
            try write(.cbor, name, CBORValue.map(object.attStmt))
            try write(.authenticatorData, name, object.authData)
            try write(
                .cose, "\(algorithm.rawValue)",
                try #require(object.authenticatorData.attestedCredentialData).credentialPublicKey)
        }
    }

    static let combinations: [(AttestationStatementFormat, COSEAlgorithmIdentifier, Bool)] = [
        (.none, .es256, false), (.none, .es384, false), (.none, .es512, false), (.none, .edDSA, false),
        (.none, .ed448, false), (.none, .es256K, false), (.none, .rs256, false), (.none, .mlDSA65, false),
        (.packed, .es256, true), (.packed, .es256, false), (.fidoU2F, .es256, false), (.apple, .es256, false),
        (.androidKey, .es256, false), (.tpm, .es256, false), (.tpm, .rs256, false), (.androidSafetyNet, .rs256, false),
    ]
}
