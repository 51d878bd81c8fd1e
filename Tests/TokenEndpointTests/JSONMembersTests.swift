@testable import TokenEndpoint
import Testing
import WebAuthnVerify

@Suite("JSON members")
struct JSONMembersTests {
    private func parse(_ text: String) throws(JSONError) -> JSONMembers {
        try JSONMembers(parsing: Array(text.utf8))
    }

    @Test(
        "names are read in any case, values as they are",
        arguments: [
            #"{"Email":"a"}"#, #"{"email":"a"}"#, #" { "EMAIL" : "a" , "x" : [1,{"y":null}] } "#,
            #"{"\u0045mail":"a"}"#,
            #"{"Email":"\u0061","n":-0.5e+10,"t":true,"f":false}"#,
        ])
    func names(_ text: String) throws {
        #expect(try parse(text).string("Email") == "a")
    }

    @Test func `only ASCII letters have two cases`() throws {
        let members = try parse("{\"IdTo\u{212A}enHint\":1,\"IDTOKENHINT\":\"a\"}")
        #expect(try members.string("IdTokenHint") == "a")
    }

    @Test func `null and absent are the same`() throws {
        #expect(try parse(#"{"Email":null}"#).string("Email") == nil)
        #expect(try parse("{}").string("Email") == nil)
    }

    @Test(
        "a known member that is not a string is refused",
        arguments: ["1", "1.5", "1e400", "true", "[]", "[\"a\"]", "{}"])
    func wrongType(_ value: String) throws {
        let members = try parse(#"{"Email":\#(value)}"#)
        #expect(throws: Refusal.self) { try members.string("Email") }
    }

    @Test(
        "a name given twice is refused, in any case",
        arguments: [#"{"Email":"a","Email":"a"}"#, #"{"Email":"a","email":"b"}"#])
    func repeated(_ text: String) {
        #expect(throws: JSONError.duplicateKey) { try parse(text) }
    }

    @Test(
        "what is not one JSON object is refused",
        arguments: [
            "", "null", "[]", "1", "\"a\"", "{", "}", "{}{}", "{} x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#,
            #"{"a":1 "b":2}"#, #"{a:1}"#,
            #"{"a":'b'}"#, #"{"a":01}"#, #"{"a":1.}"#, #"{"a":.5}"#, #"{"a":+1}"#, #"{"a":NaN}"#, #"{"a":"\x"}"#,
            #"{"a":"\u12"}"#,
            #"{"a":"\ud800"}"#, #"{"a":"\udc00"}"#, #"{"a":"\u0000"}"#, "{\"a\":\"\u{1}\"}", #"{"a":"b"/*x*/}"#,
            "\u{feff}{}",
        ])
    func malformed(_ text: String) {
        #expect(throws: JSONError.self) { try parse(text) }
    }

    @Test func `invalid UTF-8 is refused`() {
        #expect(throws: JSONError.invalidUTF8) {
            try JSONMembers(parsing: Array(#"{"a":""#.utf8) + [0xFF] + Array(#""}"#.utf8))
        }
    }

    @Test func `nesting is bounded, so depth costs nothing`() {
        #expect(throws: JSONError.tooDeep) { try parse(#"{"a":"# + String(repeating: "[", count: 60_000)) }
        #expect(throws: JSONError.tooDeep) { try parse(String(repeating: #"{"a":"#, count: 10_000)) }
    }

    @Test func `no prefix of a valid body makes the reader trap`() {
        let text = Array(#"{"Email":"a\u00e9\ud83d\ude00","x":[1,-2.5e3,{"y":null}],"t":true}"#.utf8)
        for length in text.indices {
            #expect(throws: JSONError.self) { try JSONMembers(parsing: Array(text[..<length])) }
        }
    }
}
