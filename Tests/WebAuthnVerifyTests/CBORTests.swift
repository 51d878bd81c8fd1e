import Testing
import WebAuthnVerify

private func value(
    _ text: String, _ order: CBORReader.KeyOrder = .canonical, depth: Int = 4
) throws(CBORError) -> CBORValue {
    try CBORValue(parsing: hex(text).span, keyOrder: order, maximumDepth: depth)
}

@Suite("CBOR reader")
struct CBORTests {
    struct Vector: Decodable {
        var name: String
        var hex: String
        var well_formed: Bool
        var valid: Bool
        var ctap2_canonical: Bool
        var ctap2_violations: [String]?
    }

    struct File: Decodable { var vectors: [Vector] }

    @Test func `every third-party item gets the verdict of a strict CTAP2 decoder`() throws {
        guard let file = try VectorFile.load("cbor.json", as: File.self) else { return }
        var count = VectorCount("cbor.json")
        for vector in file.vectors {
            let strict = (try? value(vector.hex)) != nil
            count.record(vector.name, "canonical", expected: vector.ctap2_canonical, got: strict)
            // The tolerant mode differs in one rule only: the order of map keys.
            let onlyOrder = vector.valid && vector.ctap2_violations == ["map keys not in CTAP2 canonical order"]
            let tolerant = (try? value(vector.hex, .any)) != nil
            count.record(vector.name, "any order", expected: vector.ctap2_canonical || onlyOrder, got: tolerant)
        }
        count.report()
        #expect(count.disagreed.isEmpty)
    }

    @Test(
        "refusals name the rule that was broken",
        arguments: [
            ("", CBORError.truncated), ("18", .truncated), ("19ff", .truncated), ("62ff", .truncated),
            ("0000", .trailingBytes), ("1c", .malformed), ("ff", .malformed), ("f818", .malformed), ("df", .malformed),
            ("1817", .notShortestForm), ("1900ff", .notShortestForm), ("1a0000ffff", .notShortestForm),
            ("1b00000000ffffffff", .notShortestForm), ("5801ff", .notShortestForm), ("9800", .notShortestForm),
            ("5fff", .indefiniteLength), ("7fff", .indefiniteLength), ("9fff", .indefiniteLength),
            ("bfff", .indefiniteLength), ("c000", .tag), ("d81800", .tag), ("a201000100", .duplicateKey),
            ("a3020001000200", .keyOrder), ("a202000100", .keyOrder), ("a2616100016162", .keyOrder),
            ("a2010002", .truncated),
            ("a26161000100", .keyOrder), ("818181818100", .tooDeep), ("61ff", .invalidUTF8),
            ("62c328", .invalidUTF8), ("63eda080", .invalidUTF8),
        ])
    func refusals(_ text: String, _ expected: CBORError) {
        #expect(throws: expected) { try value(text) }
    }

    @Test func `four levels of nesting are accepted`() {
        #expect(throws: Never.self) { try value("8181818100") }
    }

    @Test func `unsorted keys are accepted where real authenticators send them`() throws {
        #expect(try value("a202000100", .any).mapping?.entries.count == 2)
        #expect(throws: CBORError.duplicateKey) { try value("a3020001000200", .any) }
        #expect(throws: CBORError.duplicateKey) { try value("a3616200616100616200", .any) }
    }

    @Test(
        "declared lengths are refused before anything is allocated",
        arguments: ["5a", "7a", "9a", "ba", "5b", "7b", "9b", "bb"],
        [UInt64(UInt32.max), UInt64(Int64.max), UInt64.max])
    func declaredLengths(_ initial: String, _ length: UInt64) {
        let width = initial.hasSuffix("a") ? 8 : 16
        let digits = String(length, radix: 16)
        guard digits.count <= width else { return }
        let bytes = initial + String(repeating: "0", count: width - digits.count) + digits + "00000000000000000000"
        #expect(throws: CBORError.self) { try value(bytes, .any) }
    }

    @Test func `nesting stops at the limit however deep the input goes`() {
        let deep = [UInt8](repeating: 0x81, count: 100_000) + [0]
        #expect(throws: CBORError.tooDeep) { try CBORValue(parsing: deep.span) }
        let maps: [UInt8] = Array(repeatElement([0xa1, 0x00], count: 50_000).joined()) + [0]
        #expect(throws: CBORError.tooDeep) { try CBORValue(parsing: maps.span) }
    }

    @Test func `a map of thirty thousand keys in falling order is read in linear time`() throws {
        var bytes: [UInt8] = [0xb9, 0x75, 0x30]
        for key in stride(from: 29_999 as UInt16, through: 0, by: -1) {
            switch key {
            case 0..<24: bytes.append(UInt8(key))
            case 24..<256: bytes += [0x18, UInt8(key)]
            default: bytes += [0x19, UInt8(key >> 8), UInt8(key & 0xff)]
            }
            bytes.append(0x00)
        }
        let elapsed = ContinuousClock().measure {
            #expect((try? CBORValue(parsing: bytes.span))?.mapping?.entries.count == 30_000)
        }
        // Quadratic work would need seconds; the bound is wide because builds are unoptimised.
        #expect(elapsed < .seconds(2))
    }

    @Test func `integers at the edges of Int64 are exact and beyond them refused`() throws {
        var reader = CBORReader(hex("1b7fffffffffffffff3b7fffffffffffffff").span)
        #expect(try reader.integer() == .max)
        #expect(try reader.integer() == .min)
        #expect(throws: CBORError.integerOutOfRange) {
            var reader = CBORReader(hex("3bffffffffffffffff").span)
            _ = try reader.integer()
        }
        #expect(try value("3bffffffffffffffff") == .negative(.max))
    }

    @Test func `every truncation of a valid item is refused`() throws {
        let item = hex("a401020326200121582065eda5a12577c2bae829437fe338701a10aaa375e1bb5b5de108de439c08551d")
        #expect(throws: Never.self) { try CBORValue(parsing: item.span) }
        for length in 0..<item.count {
            let part = Array(item.prefix(length))
            #expect(throws: CBORError.self) { try CBORValue(parsing: part.span) }
        }
    }
}
