import WebAuthnVerify

/// What the audit log knows about an event beside its columns.
struct AuditDetail: Sendable {
    private var texts: [String: String] = [:]
    private var lists: [String: [String]] = [:]

    /// Reads the members of a JSON object that are texts, numbers or lists of texts; others are left out.
    init(_ json: String) {
        try? read(Array(json.utf8))
    }

    /// A member that is a text or a number.
    func text(_ name: String) -> String? { texts[name] }

    /// A member that is a list of texts; empty without it.
    func list(_ name: String) -> [String] { lists[name] ?? [] }

    private mutating func read(_ bytes: [UInt8]) throws(JSONError) {
        try JSONReader.validate(bytes.span, maximumLength: 64 * 1024)
        var json = JSONReader(validated: bytes.span)
        var members = try json.object()
        while let name = try json.key(of: &members) {
            if json.nextIsString {
                texts[name] = try json.string()
                continue
            }
            let range = try json.skip(in: members)
            let value = bytes[range]
            switch value.first ?? 0 {
            case UInt8(ascii: "["):
                // A list of anything else than texts is of no use here.
                var list = JSONReader(validated: bytes.span.extracting(range))
                lists[name] = try? list.strings()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                texts[name] = String(decoding: value, as: UTF8.self)
            default: break
            }
        }
    }
}
