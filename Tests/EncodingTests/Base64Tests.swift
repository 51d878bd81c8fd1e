import Encoding
import Foundation
import TestSupport
import Testing

@Suite("Strict base64")
struct Base64Tests {
    @Test func `what is encoded is decoded again, and Foundation agrees`() {
        var generator = SeededGenerator(seed: 1)
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let text = Base64.urlEncode(bytes)
            #expect(Base64.urlDecode(text) == bytes)
            let standard = Data(bytes).base64EncodedString()
            #expect(Base64.decode(standard) == bytes)
            #expect(text == standard.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))
        }
    }

    @Test(
        "anything but canonical base64url is refused",
        arguments: ["A", "AB=", "AA==", "A+", "A/", "AB", "AAB", " AA", "AA ", "A\nA", "AAAAA", "é"])
    func sloppiness(_ text: String) {
        #expect(Base64.urlDecode(text) == nil)
    }

    @Test(
        "anything but canonical padded base64 is refused",
        arguments: ["AA", "AB==", "AAB=", "A===", "====", "AA=A", "A-==", "!!!!"])
    func standardSloppiness(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test(arguments: [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("\u{fb}\u{ff}", "-_8"), ("\0", "AA")])
    func `the examples of RFC 4648 §10 go both ways`(_ plain: String, _ text: String) {
        let bytes = plain.unicodeScalars.map { UInt8($0.value) }
        #expect(Base64.urlEncode(bytes) == text)
        #expect(Base64.urlDecode(text) == bytes)
    }

    @Test(arguments: ["Zg==", "Z", "Zh", "Zm9", "Zm+v", "Zm/v", "Zm 9v", "Zm9v\n", "Zm9vé", "=", "Zm9v="])
    func `padding, other alphabets and unused bits are refused`(_ text: String) {
        #expect(Base64.urlDecode(text) == nil)
    }
}
