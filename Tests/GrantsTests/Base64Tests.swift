import Foundation
import Grants
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
}
