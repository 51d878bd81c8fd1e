@testable import Grants
import Testing

@Suite("Codes and numbers as people type them")
struct TypedCodeTests {
    /// The digits 1 to 6 as keyboards, messengers and dialogs give them.
    private static let ways = [
        "123456", " 123 456\t", "123-456", "1\u{2010}2\u{2011}3\u{2012}4\u{2013}5\u{2014}6",
        "123\u{a0}\u{202f}\u{2009}456",
        "\u{feff}123456\u{200b}", "\u{200e}123456\u{200f}", "\u{2066}123456\u{2069}", "\u{202d}123\u{ad}456\u{202c}",
        "12\u{2060}34\u{200d}56\r\n", "\u{ff11}\u{ff12}\u{ff13}\u{ff14}\u{ff15}\u{ff16}",
        "\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}", "\u{6f1}\u{6f2}\u{6f3}-\u{6f4}\u{6f5}\u{6f6}",
        "\u{967}\u{968}\u{969}\u{96a}\u{96b}\u{96c}", "\u{1d7cf}\u{1d7d0}\u{1d7d1}\u{1d7d2}\u{1d7d3}\u{1d7d4}",
    ]

    @Test("how it is typed does not count", arguments: ways)
    func spelling(_ typed: String) {
        #expect(TypedCode(typed).text == "123456")
        #expect(TypedCode(typed).number(digits: 6) == "123456")
    }

    @Test(
        "what is no decimal digit stays, so that the code is another",
        arguments: [
            "\u{b9}23456", "\u{2460}23456", "\u{4e00}23456", "I23456", "123.456", "123_456", "+123456", "12345",
        ])
    func strange(_ typed: String) {
        #expect(TypedCode(typed).text != "123456" && TypedCode(typed).number(digits: 6) == nil)
    }

    @Test func `decimal digits of every script are digits, and nothing else is`() {
        let digits = (UInt32(0)...0x10FFFF).compactMap { Unicode.Scalar($0) }.filter {
            $0.properties.generalCategory == .decimalNumber
        }
        #expect(digits.count >= 650)
        for scalar in digits {
            let value = Int(scalar.properties.numericValue ?? -1)
            #expect(TypedCode(String(scalar)).text == String(value))
        }
        let read = (UInt32(0)...0x10FFFF).compactMap { Unicode.Scalar($0) }.filter {
            TypedCode(String($0)).number(digits: 1) != nil
        }
        #expect(read == digits)
    }

    @Test func `a long text is not looked at`() {
        #expect(TypedCode(String(repeating: " ", count: 250) + "123456").text == "123456")
        #expect(TypedCode(String(repeating: " ", count: 251) + "123456").text == "")
    }
}

@Suite("Lists, resources and phone numbers as clients send them")
struct TypedListTests {
    @Test func `empty parts of a list vanish, and only a blank separates`() {
        #expect(" openid  offline_access ".blankSeparated == ["openid", "offline_access"])
        #expect("".blankSeparated == [] && "  ".blankSeparated == [])
        #expect("openid\toffline_access".blankSeparated == ["openid\toffline_access"])
    }

    @Test(
        "an empty path is /",
        arguments: [
            ("https://api.example", "https://api.example/"), ("https://api.example?x=1", "https://api.example/?x=1"),
            ("https://api.example:8443", "https://api.example:8443/"), ("urn:api", "urn:api"),
        ])
    func equal(_ one: String, _ other: String) {
        #expect(ResourceIndicator.areEqual(one, other) && ResourceIndicator.areEqual(other, one))
    }

    @Test(
        "nothing else is folded",
        arguments: [
            ("https://api.example", "https://API.example"), ("https://api.example/v1", "https://api.example/v1/"),
            ("https://api.example/", "https://api.example//"), ("https://api.example", "http://api.example"),
            ("https://api.example", "https://api.example#"), ("urn:api", "urn:api/"), ("https://", "https:///"),
        ])
    func different(_ one: String, _ other: String) {
        #expect(!ResourceIndicator.areEqual(one, other))
    }

    @Test(
        "what copying brings around a number does not count",
        arguments: ["\u{202a}+4366412345678\u{202c}", " +4366412345678\u{200b}", "\u{feff}+4366412345678\r\n"])
    func number(_ typed: String) {
        #expect(PhoneNumber(e164: typed) == nil, "apps send E.164 alone")
        #expect(PhoneNumber(typed: typed, defaultRegion: "AT")?.text == "+4366412345678")
    }

    @Test func `what cannot be seen between its digits does not count either`() {
        #expect(PhoneNumber(typed: "0664\u{200e}-1234\u{2060}5678", defaultRegion: "AT")?.text == "+4366412345678")
    }
}
