import FoundationEssentials
import Texts

/// Text encoded for a header field: no line break except folds, no byte beyond ASCII.
enum HeaderText {
    /// Unstructured text (RFC 5322 §2.2.1): as it is if short printable ASCII, else as encoded words.
    static func unstructured(_ text: String) -> String {
        let text = DisplayText.clean(text, limit: 200)
        let isPlain =
            text.utf8.count <= 60 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && !text.contains("=?")
        return isPlain ? text : encodedWords(text)
    }

    /// A display name (RFC 5322 §3.2.5): a quoted string, or encoded words.
    static func phrase(_ text: String) -> String {
        let text = DisplayText.clean(text)
        guard text.utf8.count <= 60, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), !text.contains("=?") else {
            return encodedWords(text)
        }
        let escaped = text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
        return "\"\(String(escaped))\""
    }

    /// A mailbox: `name <address>` or the bare address.
    static func mailbox(_ mailbox: Mailbox) -> String {
        guard let name = mailbox.name else { return mailbox.address.text }
        return "\(phrase(name))\r\n <\(mailbox.address.text)>"
    }

    /// Encoded words in base64 (RFC 2047 §2 and §5): each at most 75 characters, holding whole characters, on a line of
    /// its own so that no line exceeds 76.
    private static func encodedWords(_ text: String) -> String {
        var words: [String] = []
        var chunk: [UInt8] = []
        for scalar in text.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            if chunk.count + bytes.count > 36 {
                words.append(encodedWord(chunk))
                chunk.removeAll(keepingCapacity: true)
            }
            chunk += bytes
        }
        words.append(encodedWord(chunk))
        return words.joined(separator: "\r\n ")
    }

    private static func encodedWord(_ bytes: [UInt8]) -> String {
        "=?UTF-8?B?\(Data(bytes).base64EncodedString())?="
    }
}
