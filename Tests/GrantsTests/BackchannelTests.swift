import Persistence
import Testing

@testable import Grants

@Suite struct BackchannelTests {
    @Test(arguments: [
        "ada@example.com", "Ada@Example.com", "+491701234567", "8a6d3d4e-0000-4000-8000-000000000000",
    ])
    func `an address, a number and a sub are hints`(_ text: String) {
        #expect(LoginHint(text)?.text == text)
    }

    @Test func `what copying brings around an address is no part of the hint`() {
        #expect(LoginHint(" ada@x.example\u{200B} ")?.text == "ada@x.example")
    }

    @Test(arguments: [
        "", "ada", "ada@x .example", "491701234567", "+0491701234567", "+49 170 1234567",
        "8A6D3D4E-0000-4000-8000-000000000000", "8a6d3d4e", "ada@x.example\0",
    ])
    func `nothing else is a hint`(_ text: String) {
        #expect(LoginHint(text) == nil)
    }

    @Test(arguments: [String(repeating: "x", count: 64), "Pay 5 €", "👩‍👩‍👧", "مرحبا", "<b>"])
    func `a message that can be shown`(_ text: String) {
        #expect(BindingMessage.isValid(text))
    }

    @Test(arguments: [String(repeating: "x", count: 65), "a\nb", "a\u{202E}b", "a\u{2066}b", "a\u{7F}", "\u{2028}"])
    func `a message that could hide text`(_ text: String) {
        #expect(!BindingMessage.isValid(text))
    }
}
