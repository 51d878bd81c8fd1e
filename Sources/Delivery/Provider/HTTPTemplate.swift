import FoundationEssentials
import Persistence

/// The body of a call to a vendor's API: the operator's parameters with a message in the place of placeholders.
enum HTTPTemplate {
    /// The values of the placeholders. What a message lacks is empty.
    static func values(
        of message: LeasedMessage, _ words: MessageWords, sender: String?
    ) -> [String: String] {
        let code = words.code ?? ""
        return [
            "to": message.recipient, "to_digits": message.recipient.filter { $0 != "+" }, "from": sender ?? "",
            "text": words.text ?? "", "code": code, "spaced_code": MessageWriter.spaced(code),
            "link": words.link ?? "", "id": message.id.description, "locale": message.locale ?? "en",
        ]
    }

    /// Replaces placeholders in one pass: what a value holds is never looked at again. An unknown one stays.
    static func fill(_ text: String, _ values: [String: String]) -> String {
        var filled = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            filled += rest[..<open]
            let after = rest[rest.index(after: open)...]
            if let close = after.firstIndex(of: "}"), let value = values[String(after[..<close])] {
                filled += value
                rest = after[after.index(after: close)...]
            } else {
                filled += "{"
                rest = after
            }
        }
        return filled + rest
    }

    /// The body and its `Content-Type`; `nil` when the fields do not fit the body.
    static func body(
        _ fields: TemplateValue, as body: Provider.Body, _ values: [String: String]
    ) -> (type: String, bytes: [UInt8])? {
        let filled = fields.mapTexts { fill($0, values) }
        switch body {
        case .json:
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard let json = try? encoder.encode(filled) else { return nil }
            return ("application/json", Array(json))
        case .form:
            guard case .members(let members) = filled else { return nil }
            var pairs: [String] = []
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                guard case .text(let text) = value else { return nil }
                pairs.append("\(encoded(name))=\(encoded(text))")
            }
            return ("application/x-www-form-urlencoded", Array(pairs.joined(separator: "&").utf8))
        }
    }

    /// The `application/x-www-form-urlencoded` serializer of the URL standard (§5.2).
    private static func encoded(_ text: String) -> String {
        var encoded: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"):
                encoded.append(byte)
            case 0x20: encoded.append(UInt8(ascii: "+"))
            default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
