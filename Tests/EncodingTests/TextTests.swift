import Encoding
import Testing

@Suite("Texts of bytes and numbers")
struct TextTests {
    @Test(
        "RFC 4648 §10: Base32, without padding",
        arguments: [
            ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ])
    func base32(_ plain: String, _ encoded: String) {
        #expect(Base32.encode(Array(plain.utf8)) == encoded)
    }

    @Test func `hexadecimal goes both ways and is refused when it is none`() {
        #expect(Hex.encode([0, 0x7f, 0xff]) == "007fff" && Hex.decode("007FfF") == [0, 0x7f, 0xff])
        for text in ["0", "0g", "+1", "é0", " 0"] { #expect(Hex.decode(text) == nil, "\(text)") }
    }

    @Test func `big-endian integers go both ways and are bounded`() {
        #expect(bigEndianBytes(UInt32(0x0102_0304)) == [1, 2, 3, 4])
        #expect([1, 2, 3, 4].bigEndianInteger(as: UInt32.self) == 0x0102_0304)
        #expect([UInt8](repeating: 0, count: 5).bigEndianInteger(as: UInt32.self) == nil)
    }

    @Test func `bytes of another length or value differ`() {
        #expect(constantTimeEqual([1, 2], [1, 2]) && !constantTimeEqual([1, 2], [1, 3]))
        #expect(!constantTimeEqual([1, 2], [1]) && constantTimeEqual([], []))
    }

    @Test func `an instant is RFC 3339 in UTC with milliseconds`() {
        #expect(Timestamp.text(1_795_328_248.25) == "2026-11-22T06:17:28.250Z")
    }

    @Test func `text cannot leave its place in HTML`() {
        #expect(HTMLText.escape("<b a=\"\u{301}\">&") == "&lt;b a=&quot;\u{301}&quot;&gt;&amp;")
        // Each of them at each place of a block, and none of their neighbours.
        for (character, escaped) in ["\"": "&quot;", "&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;"] {
            for place in 0..<17 {
                let before = String(repeating: "#", count: place)
                #expect(HTMLText.escape(before + character + "=?%(;0123456789") == before + escaped + "=?%(;0123456789")
            }
        }
    }
}
