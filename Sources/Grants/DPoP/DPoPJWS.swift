import Encoding
import WebAuthnVerify

/// A JWS in compact form (RFC 7515 §7.1) whose header and payload are JSON objects. Nothing of it is verified yet.
struct DPoPJWS {
    let header: JSONMembers
    let payload: JSONMembers
    /// What the signature is over.
    let input: [UInt8]
    let signature: [UInt8]

    /// The longest proof.
    static let maximumBytes = 4096

    /// `nil` for anything but three parts of canonical base64url without padding, of which two are JSON objects without
    /// a repeated member.
    init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64.urlDecode(parts[0]).flatMap(JSONMembers.init),
            let payload = Base64.urlDecode(parts[1]).flatMap(JSONMembers.init),
            let signature = Base64.urlDecode(parts[2])
        else { return nil }
        self.header = header
        self.payload = payload
        self.signature = signature
        input = Array(text[..<parts[1].endIndex].utf8)
    }
}

/// The claims of a proof (RFC 9449 §4.2), of the types that they have to have.
struct DPoPClaims {
    let jti: String
    let htm: String
    let htu: String
    let iat: Double
    let exp: Double?
    let nbf: Double?
    let nonce: String?
    let ath: String?

    /// `nil` where a claim is missing or of another type.
    init?(_ payload: JSONMembers) {
        guard let jti = payload.string("jti"), let htm = payload.string("htm"), let htu = payload.string("htu"),
            let iat = payload.date("iat")
        else { return nil }
        self.jti = jti
        self.htm = htm
        self.htu = htu
        self.iat = iat
        exp = payload.date("exp")
        nbf = payload.date("nbf")
        nonce = payload.string("nonce")
        ath = payload.string("ath")
        guard payload.has("exp") == (exp != nil), payload.has("nbf") == (nbf != nil),
            payload.has("nonce") == (nonce != nil), payload.has("ath") == (ath != nil)
        else { return nil }
    }
}

/// The members of one JSON object. Strict (``JSONReader``): no repeated member at any level, and bounded.
struct JSONMembers {
    private enum Value {
        case string(String)
        /// Anything else, as it was written.
        case text(ArraySlice<UInt8>)
    }

    private var values: [String: Value] = [:]

    /// `nil` unless the bytes are one object.
    init?(_ bytes: [UInt8]) {
        guard (try? read(bytes)) != nil else { return nil }
    }

    private mutating func read(_ bytes: [UInt8]) throws(JSONError) {
        try JSONReader.validate(bytes.span, maximumLength: DPoPJWS.maximumBytes)
        var json = JSONReader(validated: bytes.span)
        var members = try json.object()
        while let name = try json.key(of: &members) {
            values[name] = json.nextIsString ? .string(try json.string()) : .text(bytes[try json.skip(in: members)])
        }
        try json.finish()
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// Whether the member is absent or this string.
    func isAbsent(_ name: String, or expected: String) -> Bool { !has(name) || string(name) == expected }

    /// `nil` where the member is absent or no string.
    func string(_ name: String) -> String? {
        if case .string(let value) = values[name] { value } else { nil }
    }

    /// `nil` where the member is absent or no object.
    func object(_ name: String) -> JSONMembers? {
        if case .text(let text) = values[name] { JSONMembers(Array(text)) } else { nil }
    }

    /// NumericDate (RFC 7519 §2) from 1970 to 9999; `nil` where the member is absent or anything else.
    func date(_ name: String) -> Double? {
        guard case .text(let text) = values[name], text.count <= 32, text.first.map(Self.beginsNumber) == true,
            let value = Double(String(decoding: text, as: UTF8.self)), (0...253_402_300_799).contains(value)
        else { return nil }
        return value
    }

    private static func beginsNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
