import Crypto
import Testing
import WebAuthnVerify

/// COSE_Sign1 examples (RFC 9052 §4.2). The envelope is no business of the library, so the test opens it.
@Suite("COSE vectors")
struct COSEVectorTests {
    struct Key: Decodable {
        var crv: String
        var x_hex: String
        var y_hex: String?
    }

    struct Inputs: Decodable {
        var cose_sign1_hex: String
        var external_aad_hex: String
    }

    struct Case: Decodable {
        var name: String
        var alg_name: String
        var key: Key
        var inputs: Inputs
        var expected: String
    }

    struct File: Decodable { var cases: [Case] }

    @Test func `COSE_Sign1 examples verify as their authors say`() throws {
        guard let file = try VectorFile.load("cose.json", as: File.self) else { return }
        var count = VectorCount("cose.json")
        for vector in file.cases {
            // WebAuthn L3 §5.8.5 fixes ES512 to P-521; COSE alone does not. Ours is the stricter reading.
            if vector.alg_name == "ES512", vector.key.crv == "P-256" {
                #expect(throws: COSEKeyError.curveMismatch) { try key(vector) }
                count.record(vector.name, "refused by WebAuthn's curve rule", expected: false, got: false)
                continue
            }
            count.record(vector.name, vector.alg_name, expected: vector.expected == "ok", got: verifies(vector))
        }
        count.report()
        #expect(count.disagreed.isEmpty)
    }

    private func key(_ vector: Case) throws -> CredentialPublicKey {
        let x = hex(vector.key.x_hex)
        let label: [UInt8] =
            switch (vector.alg_name, vector.key.crv) {
            case ("ES256", _): [0x26]
            case ("ES384", _): [0x38, 0x22]
            case ("ES512", _): [0x38, 0x23]
            case (_, "Ed448"): [0x38, 0x34]
            default: [0x27]
            }
        let curve: [UInt8] = [["P-256": 1, "P-384": 2, "P-521": 3, "Ed25519": 6, "Ed448": 7][vector.key.crv] ?? 0]
        var bytes: [UInt8] = vector.key.y_hex == nil ? [0xa4, 0x01, 0x01] : [0xa5, 0x01, 0x02]
        bytes += [0x03] + label + [0x20] + curve + [0x21, 0x58, UInt8(x.count)] + x
        if let y = vector.key.y_hex.map({ hex($0) }) { bytes += [0x22, 0x58, UInt8(y.count)] + y }
        return try CredentialPublicKey(decoding: bytes.span, policy: .extended)
    }

    /// Opens the envelope, rebuilds `Sig_structure` and checks the signature; anything unexpected is a refusal.
    private func verifies(_ vector: Case) -> Bool {
        var bytes = hex(vector.inputs.cose_sign1_hex)
        // COSE_Sign1 is tag 18, which the library's reader refuses like every tag.
        if bytes.first == 0xd2 { bytes.removeFirst() }
        guard let parts = try? CBORValue(parsing: bytes.span).elements, parts.count == 4,
            let protected = parts[0].byteString, let payload = parts[2].byteString, let raw = parts[3].byteString,
            let header = try? CBORValue(parsing: (protected.isEmpty ? [0xa0] : protected).span).mapping
        else { return false }
        let algorithms = ["ES256": -7, "ES384": -35, "ES512": -36, "EdDSA": -8]
        let label = CBORValue.unsigned(1)
        let stated = header.entries.first { $0.key == label } ?? parts[1].mapping?.entries.first { $0.key == label }
        guard let number = algorithms[vector.alg_name], stated?.value.integer == Int64(number) else { return false }
        let structure: [UInt8] =
            [0x84, 0x6a] + Array("Signature1".utf8)
            // RFC 9052 §4.4: an empty protected header is signed as the empty string, however it was sent.
            + byteString(header.entries.isEmpty ? [] : protected)
            + byteString(hex(vector.inputs.external_aad_hex)) + byteString(payload)
        let signature: [UInt8]? =
            switch vector.alg_name {
            case "ES256": (try? P256.Signing.ECDSASignature(rawRepresentation: raw)).map { Array($0.derRepresentation) }
            case "ES384": (try? P384.Signing.ECDSASignature(rawRepresentation: raw)).map { Array($0.derRepresentation) }
            case "ES512": (try? P521.Signing.ECDSASignature(rawRepresentation: raw)).map { Array($0.derRepresentation) }
            default: raw
            }
        guard let signature, let key = try? key(vector) else { return false }
        return key.isValidSignature(signature, for: structure)
    }

    private func byteString(_ bytes: [UInt8]) -> [UInt8] {
        (bytes.count < 24 ? [0x40 | UInt8(bytes.count)] : [0x58, UInt8(bytes.count)]) + bytes
    }
}
