/// The members every serialised `PublicKeyCredential` has, and the reading of them (WebAuthn L3 §5.1.8).
struct PublicKeyCredentialJSON {
    typealias Member = ResponseFormatError.Member

    /// The longest document read; attestation with a certificate chain and an ML-DSA key stays well below.
    static let maximumLength = 131_072

    /// Which of the two responses is expected, and so which members of `response` are read.
    enum Kind { case registration, authentication }

    var id: [UInt8] = []
    var authenticatorAttachment: String?
    var clientExtensionResults: [UInt8] = []
    var response = Response()

    /// The members of `response` that are read; the others are ignored.
    struct Response {
        var clientDataJSON: [UInt8]?
        var attestationObject: [UInt8]?
        var transports: [String] = []
        var authenticatorData: [UInt8]?
        var signature: [UInt8]?
        var userHandle: [UInt8]?
    }

    /// Reads a whole document.
    ///
    /// `clientExtensionResults` may be absent or `null`, because some native clients have none; if present it is an
    /// object (§7.1 and §7.2 step 4).
    init(parsing bytes: Span<UInt8>, as kind: Kind) throws(ResponseFormatError) {
        // The key whose value is being read, for the error that names it.
        var current: String?
        var rawId: [UInt8]?, id: [UInt8]?, type: String?
        var hasResponse = false
        do throws(JSONError) {
            try JSONReader.validate(bytes, maximumLength: Self.maximumLength)
            var json = JSONReader(validated: bytes)
            var members = try json.object()
            while let key = try json.key(of: &members) {
                current = key
                switch key {
                case "id": id = try json.base64URL()
                case "rawId": rawId = try json.base64URL()
                case "type": type = try json.string()
                case "response":
                    hasResponse = true
                    var inner = try json.object(in: members)
                    while let key = try json.key(of: &inner) {
                        current = key
                        try response.read(key, as: kind, &json, in: inner)
                    }
                case "authenticatorAttachment": authenticatorAttachment = try json.string()
                case "clientExtensionResults":
                    let value = try json.skip(in: members)
                    guard bytes[value.lowerBound] == UInt8(ascii: "{") else { throw .unexpectedType }
                    clientExtensionResults = bytes.array(value)
                default: _ = try json.skip(in: members)
                }
                current = nil
            }
            try json.finish()
        } catch {
            switch error {
            case .unexpectedType, .invalidBase64URL:
                throw current.flatMap(Member.init).map { .malformedMember($0) } ?? .json(error)
            default: throw .json(error)
            }
        }
        guard let id else { throw .missingMember(.id) }
        guard let rawId else { throw .missingMember(.rawId) }
        guard let type else { throw .missingMember(.type) }
        guard hasResponse else { throw .missingMember(.response) }
        guard type == "public-key" else { throw .notPublicKey }
        guard !id.isEmpty else { throw .malformedMember(.id) }
        // Two fields for one fact: code that looks up by one and verifies by the other can be deceived (CVE class "id
        // is not rawId").
        guard id == rawId else { throw .idMismatch }
        self.id = id
    }

    /// A member of `response` that must be there and not be empty.
    static func require(_ value: [UInt8]?, _ member: Member) throws(ResponseFormatError) -> [UInt8] {
        guard let value else { throw .missingMember(member) }
        guard !value.isEmpty else { throw .malformedMember(member) }
        return value
    }
}

extension PublicKeyCredentialJSON.Response {
    fileprivate mutating func read(
        _ key: String, as kind: PublicKeyCredentialJSON.Kind, _ json: inout JSONReader, in members: JSONReader.Members
    ) throws(JSONError) {
        switch (kind, key) {
        case (_, "clientDataJSON"): clientDataJSON = try json.base64URL()
        case (.authentication, "authenticatorData"): authenticatorData = try json.base64URL()
        case (.authentication, "signature"): signature = try json.base64URL()
        case (.authentication, "userHandle"): userHandle = try json.base64URL()
        case (.registration, "attestationObject"): attestationObject = try json.base64URL()
        case (.registration, "transports"): transports = try json.strings()
        default: _ = try json.skip(in: members)
        }
    }
}
