/// `CollectedClientData`, what the client says it asked the authenticator for (WebAuthn L3 §5.8.1).
public struct CollectedClientData: Sendable, Equatable {
    /// `webauthn.create` or `webauthn.get`.
    public var type: String
    /// The challenge in base64url, as sent.
    public var challenge: String
    /// The origin, as sent.
    public var origin: String
    /// True when the ceremony ran in a frame of another origin; absent counts as false.
    public var crossOrigin: Bool?
    /// The top-level origin of such a frame.
    public var topOrigin: String?

    /// The longest `clientDataJSON` read.
    public static let maximumLength = 65_536

    /// Reads `clientDataJSON` (WebAuthn L3 §7.1 steps 5 and 6, §7.2 steps 8 and 9).
    ///
    /// The full JSON grammar applies, not the limited verification algorithm of §5.8.1.2, because native clients
    /// serialise as they please. A byte order mark is stripped, as *UTF-8 decode* does; unknown members are ignored;
    /// `tokenBinding` is ignored when it is what L2 or its drafts defined: an object with a known `status`, `null`, or
    /// `"unused"`.
    public init(parsing bytes: Span<UInt8>) throws(JSONError) {
        try JSONReader.validate(bytes, maximumLength: Self.maximumLength)
        try self.init(validated: bytes)
    }

    /// Reads text that is known to be UTF-8 of bounded length.
    init(validated bytes: Span<UInt8>) throws(JSONError) {
        let hasMark = bytes.count >= 3 && bytes[0] == 0xef && bytes[1] == 0xbb && bytes[2] == 0xbf
        var json = JSONReader(validated: hasMark ? bytes.extracting(3..<bytes.count) : bytes)
        var type: String?, challenge: String?, origin: String?
        var crossOrigin: Bool?, topOrigin: String?
        var members = try json.object()
        while let key = try json.key(of: &members) {
            switch key {
            case "type": type = try json.string()
            case "challenge": challenge = try json.string()
            case "origin": origin = try json.string()
            case "crossOrigin": crossOrigin = try json.boolean()
            case "topOrigin": topOrigin = try json.string()
            case "tokenBinding": try Self.tokenBinding(&json, in: members)
            default: _ = try json.skip(in: members)
            }
        }
        try json.finish()
        // The three members every client sends; without one of them there is nothing to compare.
        guard let type, let challenge, let origin else { throw .unexpectedType }
        self.init(
            type: type, challenge: challenge, origin: origin, crossOrigin: crossOrigin, topOrigin: topOrigin)
    }

    /// A value made of its members, for authenticators in software and for tests.
    public init(
        type: String, challenge: String, origin: String, crossOrigin: Bool? = nil, topOrigin: String? = nil
    ) {
        self.type = type
        self.challenge = challenge
        self.origin = origin
        self.crossOrigin = crossOrigin
        self.topOrigin = topOrigin
    }

    /// `TokenBinding` of WebAuthn L2 §5.8.1: an object with `status` of `present` or `supported`. L3 reserves the
    /// member.
    private static func tokenBinding(_ json: inout JSONReader, in parent: JSONReader.Members) throws(JSONError) {
        if json.nextIsString {
            // Browsers of 2017 wrote the word instead of an object; any other text is no token binding.
            guard try json.string() == "unused" else { throw .unexpectedType }
            return
        }
        var members = try json.object(in: parent)
        var status: String?
        while let key = try json.key(of: &members) {
            if key == "status" { status = try json.string() } else { _ = try json.skip(in: members) }
        }
        // "not-supported" was a value of the drafts, and early clients send it.
        guard let status, ["present", "supported", "not-supported"].contains(status) else { throw .unexpectedType }
    }
}
