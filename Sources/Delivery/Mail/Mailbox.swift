import Texts

/// An address with an optional display name (RFC 5322 §3.4), such as the value of `POSTERN_MAIL_FROM`.
public struct Mailbox: Sendable, Hashable {
    /// What a mail program shows, cleaned by ``DisplayText``; `nil` or non-empty.
    public let name: String?
    /// The address itself.
    public let address: MailAddress

    /// A mailbox; `name` is cleaned and dropped when nothing of it remains.
    public init(name: String? = nil, address: MailAddress) {
        self.name = name.map { DisplayText.clean($0) }.flatMap { $0.isEmpty ? nil : $0 }
        self.address = address
    }

    /// Reads `a@example.com`, `<a@example.com>`, `Name <a@example.com>` or `"Name" <a@example.com>`.
    ///
    /// - Returns: `nil` if there is no valid ``MailAddress`` in it.
    public init?(parsing text: String) {
        let text = text.drop { $0 == " " }
        guard text.last == ">", let open = text.lastIndex(of: "<") else {
            guard let address = MailAddress(String(text)) else { return nil }
            self.init(address: address)
            return
        }
        guard let address = MailAddress(String(text[text.index(after: open)...].dropLast())) else { return nil }
        var name = DisplayText.clean(String(text[..<open]))
        if name.count >= 2, name.first == "\"", name.last == "\"" {
            name = String(name.dropFirst().dropLast())
        }
        self.init(name: name, address: address)
    }
}
