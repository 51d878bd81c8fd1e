import SoftwareAuthenticator
import Testing
import WebAuthnVerify

private func clientData(_ text: String) throws(JSONError) -> CollectedClientData {
    let bytes = Array(text.utf8)
    return try CollectedClientData(parsing: bytes.span)
}

/// A document with the three members every client sends, and more.
private func document(_ more: String) -> String {
    #"{"type":"t","challenge":"c","origin":"o"\#(more)}"#
}

@Suite("JSON of clients")
struct JSONTests {
    @Test(arguments: [
        ("", JSONError.malformed), ("{", .malformed), ("[]", .unexpectedType), ("null", .unexpectedType),
        ("{}", .unexpectedType),
        (document(","), .malformed), (document("") + "x", .trailingBytes),
        (document("") + document(""), .trailingBytes),
        (document(#","type":"t""#), .duplicateKey), (document(#","\u0074ype":"t""#), .duplicateKey),
        (document(#","x":{"a":1,"a":2}"#), .duplicateKey), (document(#","x":01"#), .malformed),
        (document(#","x":+1"#), .malformed), (document(#","x":1."#), .malformed), (document(#","x":.5"#), .malformed),
        (document(#","x":1e"#), .malformed), (document(#","x":-"#), .malformed), (document(#","x":NaN"#), .malformed),
        (document(#","x":tru"#), .malformed), (document(#","x":nul"#), .malformed),
        (document(#","x":[1,]"#), .malformed),
        (document(#","x":[1 2]"#), .malformed), (document(#","x":{"a"}"#), .malformed),
        (document(#","x":{1:2}"#), .malformed),
        (document(#","x":{"a":1,}"#), .malformed), (document(#","x":"\x""#), .malformed),
        (document(#","x":"\u12""#), .malformed),
        (document(#","x":"\u12g4""#), .malformed), (document(#","x":"\ud800""#), .malformed),
        (document(#","x":"\udc00""#), .malformed), (document(#","x":"\ud800\u0041""#), .malformed),
        (document(",\"x\":\"\u{1}\""), .malformed), (document(#","x":"unfinished"#), .malformed),
        (document(#","x":'a'"#), .malformed), (document(" /* */"), .malformed),
        (document(#","crossOrigin":"true""#), .unexpectedType), (document(#","crossOrigin":1"#), .unexpectedType),
        (document(#","topOrigin":[]"#), .unexpectedType), (document(#","tokenBinding":[]"#), .unexpectedType),
        (document(#","topOrigin":null,"topOrigin":"x""#), .duplicateKey),
        (document(#","tokenBinding":"x""#), .unexpectedType), (document(#","tokenBinding":{}"#), .unexpectedType),
        (document(#","tokenBinding":{"status":1}"#), .unexpectedType),
        (document(#","tokenBinding":{"status":"no"}"#), .unexpectedType),
        (#"{"type":1,"challenge":"c","origin":"o"}"#, .unexpectedType),
        (#"{"type":"t","challenge":"c"}"#, .unexpectedType),
        (#"{"type":"t","origin":"o"}"#, .unexpectedType), (#"{"challenge":"c","origin":"o"}"#, .unexpectedType),
    ])
    func `what is not the JSON of a client is refused by name`(_ text: String, _ error: JSONError) {
        #expect(throws: error) { try clientData(text) }
    }

    @Test(arguments: [
        document(""), " \n\t\r" + document("") + " \n", document(#","x":[]"#), document(#","x":{}"#),
        document(#","x":[-0.5e+10,0,1E-2,{"y":[true,false,null]}]"#),
        document(#","x":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#),
        document(#","crossOrigin":false,"topOrigin":"x""#), document(#","tokenBinding":null"#),
        document(#","crossOrigin":null,"topOrigin":null,"x":{"y":null}"#),
        document(#","tokenBinding":{"status":"present","id":"x"}"#),
        document(#","tokenBinding":{"status":"supported"}"#),
        #"{"\u0074ype":"\u0074","challenge":"c","origin":"o"}"#,
    ])
    func `what is JSON is read whatever its form`(_ text: String) throws {
        let data = try clientData(text)
        #expect(data.type == "t" && data.challenge == "c" && data.origin == "o")
    }

    @Test func `a byte order mark is stripped, UTF-16 is not UTF-8`() throws {
        let text = Array(document("").utf8)
        let marked: [UInt8] = [0xef, 0xbb, 0xbf] + text
        #expect(try CollectedClientData(parsing: marked.span).type == "t")
        let twice: [UInt8] = [0xef, 0xbb, 0xbf] + marked
        #expect(throws: JSONError.unexpectedType) { try CollectedClientData(parsing: twice.span) }
        let wide: [UInt8] = [0xff, 0xfe] + text.flatMap { [$0, 0] }
        #expect(throws: JSONError.invalidUTF8) { try CollectedClientData(parsing: wide.span) }
        for bad: [UInt8] in [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80]] {
            let bytes = text.dropLast() + Array(",\"x\":\"".utf8) + bad + Array("\"}".utf8)
            #expect(throws: JSONError.invalidUTF8) { try CollectedClientData(parsing: Array(bytes).span) }
        }
    }

    @Test func `depth, members and length are bounded, and hostile documents are cheap`() {
        let deep = 100_000
        let elapsed = ContinuousClock().measure {
            #expect(throws: JSONError.tooLong) {
                try clientData(document(",\"x\":" + String(repeating: "[", count: deep)))
            }
            #expect(throws: JSONError.tooDeep) {
                try clientData(document(",\"x\":" + String(repeating: "[", count: 60_000)))
            }
            #expect(throws: JSONError.tooDeep) {
                try clientData(document(",\"x\":" + String(repeating: "{\"a\":", count: 10_000)))
            }
            #expect(throws: Never.self) { try clientData(document(",\"x\":" + String(repeating: "9", count: 60_000))) }
            #expect(throws: Never.self) {
                try clientData(document(",\"x\":\"" + String(repeating: "\\u0041", count: 10_000) + "\""))
            }
            let members = (0..<5000).map { ",\"k\($0)\":0" }.joined()
            #expect(throws: JSONError.tooManyMembers) { try clientData(document(members)) }
        }
        #expect(elapsed < .seconds(2))
    }

    @Test func `every truncation of a document is refused`() {
        let text = Array(document(#","x":[{"y":"\u00e9"},1.5e3,null]"#).utf8)
        for length in 0..<text.count {
            let part = Array(text.prefix(length))
            #expect(throws: JSONError.self) { try CollectedClientData(parsing: part.span) }
        }
    }
}

@Suite("Serialised credentials")
struct ResponseJSONTests {
    typealias Member = ResponseFormatError.Member

    private func assertion(_ text: String) throws(ResponseFormatError) {
        let bytes = Array(text.utf8)
        _ = try AuthenticationResponseJSON(parsing: bytes.span)
    }

    private func registration(_ text: String) throws(ResponseFormatError) {
        let bytes = Array(text.utf8)
        _ = try RegistrationResponseJSON(parsing: bytes.span)
    }

    /// A valid assertion with one member replaced; an empty replacement leaves it out.
    private static func replacing(_ member: String, with value: String) -> String {
        let inner = [
            "clientDataJSON": "\"AA\"", "authenticatorData": "\"AA\"", "signature": "\"AA\"", "userHandle": "\"AA\"",
        ]
        let outer = ["id": "\"AA\"", "rawId": "\"AA\"", "type": "\"public-key\"", "clientExtensionResults": "{}"]
        func object(_ members: [String: String]) -> String {
            let pairs = members.sorted { $0.key < $1.key }.map { ($0.key, $0.key == member ? value : $0.value) }
            return "{" + pairs.filter { !$0.1.isEmpty }.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        }
        var whole = outer
        whole["response"] = member == "response" ? value : object(inner)
        return object(whole)
    }

    @Test(arguments: [Member.id, .rawId, .clientDataJSON, .authenticatorData, .signature])
    func `a required member is there, a string, base64url and not empty`(_ member: Member) {
        #expect(throws: Never.self) { try assertion(Self.replacing("none", with: "")) }
        #expect(throws: ResponseFormatError.missingMember(member)) {
            try assertion(Self.replacing(member.rawValue, with: ""))
        }
        #expect(throws: ResponseFormatError.missingMember(member)) {
            try assertion(Self.replacing(member.rawValue, with: "null"))
        }
        for value in ["1", "[]", "{}", "true", "\"A\"", "\"A+==\"", "\"AA==\""] {
            #expect(throws: ResponseFormatError.malformedMember(member)) {
                try assertion(Self.replacing(member.rawValue, with: value))
            }
        }
        #expect(throws: ResponseFormatError.self) { try assertion(Self.replacing(member.rawValue, with: "\"\"")) }
    }

    @Test func `type is public-key, to the letter`() {
        for value in ["\"Public-Key\"", "\"\"", "\"public-key \""] {
            #expect(throws: ResponseFormatError.notPublicKey) { try assertion(Self.replacing("type", with: value)) }
        }
        #expect(throws: ResponseFormatError.missingMember(.type)) { try assertion(Self.replacing("type", with: "")) }
        #expect(throws: ResponseFormatError.malformedMember(.type)) { try assertion(Self.replacing("type", with: "1")) }
    }

    @Test func `response is an object`() {
        #expect(throws: ResponseFormatError.missingMember(.response)) {
            try assertion(Self.replacing("response", with: ""))
        }
        #expect(throws: ResponseFormatError.missingMember(.response)) {
            try assertion(Self.replacing("response", with: "null"))
        }
        for value in ["[]", "\"x\"", "1"] {
            #expect(throws: ResponseFormatError.malformedMember(.response)) {
                try assertion(Self.replacing("response", with: value))
            }
        }
    }

    @Test func `members that may be absent may be null`() throws {
        for member in ["clientExtensionResults", "authenticatorAttachment", "userHandle"] {
            #expect(throws: Never.self) { try assertion(Self.replacing(member, with: "null")) }
        }
    }

    @Test func `id and rawId are one`() {
        #expect(throws: ResponseFormatError.idMismatch) { try assertion(Self.replacing("rawId", with: "\"AQ\"")) }
    }

    @Test func `a user handle has 1 to 64 bytes, or is absent or null`() {
        for value in ["", "null", "\"\(String(repeating: "A", count: 86))\""] {
            #expect(throws: Never.self) { try assertion(Self.replacing("userHandle", with: value)) }
        }
        for value in ["\"\"", "1", "\"A\"", "\"\(String(repeating: "A", count: 87))\""] {
            #expect(throws: ResponseFormatError.malformedMember(.userHandle)) {
                try assertion(Self.replacing("userHandle", with: value))
            }
        }
    }

    @Test func `unknown members are ignored, and so are a registration's copies of attested data`() {
        #expect(throws: Never.self) {
            try registration(
                #"{"id":"AA","rawId":"AA","type":"public-key","new":[1],"response":{"clientDataJSON":"AA","attestationObject":"AA","#
                    + #""transports":["usb","new"],"authenticatorData":7,"publicKey":null,"publicKeyAlgorithm":-7}}"#)
        }
        #expect(throws: ResponseFormatError.malformedMember(.transports)) {
            try registration(
                #"{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"AA","attestationObject":"AA","#
                    + #""transports":"usb"}}"#)
        }
    }

    @Test(arguments: ["", "[]", "null", "\"x\"", "{", "{\"a\":1,\"a\":1}"])
    func `what is no object is refused`(_ text: String) {
        #expect(throws: ResponseFormatError.self) { try assertion(text) }
    }
}

@Suite("Authenticator data")
struct AuthenticatorDataTests {
    private static func data(flags: UInt8, _ rest: String = "") -> [UInt8] {
        [UInt8](repeating: 0, count: 32) + [flags, 0, 0, 0, 1] + hex(rest)
    }

    private static let aaguid = String(repeating: "00", count: 16)

    @Test(
        arguments: [
            (0x41, "", AuthenticatorDataError.truncated), (0x81, "", .cbor(.truncated)), (0x01, "00", .trailingBytes),
            (0x41, aaguid + "0000", .emptyCredentialId), (0x41, aaguid + "ffff" + "00112233", .truncated),
            (0x41, aaguid + "0001aa", .cbor(.truncated)), (0x41, aaguid + "0001aaa0" + "00", .trailingBytes),
            (0x41, aaguid + "0001aabf", .cbor(.indefiniteLength)), (0x81, "80", .extensionsNotMap),
            (0x81, "a10102", .extensionsNotMap),
            (0x81, "a161610100", .trailingBytes), (0x81, "bfff", .cbor(.indefiniteLength)),
            (0x81, "a2616101616101", .cbor(.duplicateKey)),
            (0x81, "a16161" + String(repeating: "81", count: 1000), .cbor(.tooDeep)), (0x81, "a0a0", .trailingBytes),
        ] as [(UInt8, String, AuthenticatorDataError)])
    func `content that is not what the flags announce is refused`(
        _ flags: UInt8, _ rest: String, _ error: AuthenticatorDataError
    ) {
        let bytes = Self.data(flags: flags, rest)
        #expect(throws: error) { try AuthenticatorData(parsing: bytes.span) }
    }

    @Test func `fewer than 37 bytes are refused`() {
        for length in 0..<37 {
            let bytes = Array(Self.data(flags: 0).prefix(length))
            #expect(throws: AuthenticatorDataError.truncated) { try AuthenticatorData(parsing: bytes.span) }
        }
    }

    @Test func `reserved flags carry no meaning and the counter is big-endian`() throws {
        let parsed = try AuthenticatorData(parsing: Self.data(flags: 0x23).span)
        #expect(parsed.signCount == 1 && parsed.flags.contains(.userPresent))
    }
}
