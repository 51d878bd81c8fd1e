public import Persistence
import Texts

/// Turns a ``MailPayload`` or a ``MailNotice`` into subject, text and HTML. The templates are part of the binary and
/// parsed once.
public struct MailRenderer: Sendable {
    /// The words of a mail.
    public struct Rendered: Sendable, Equatable {
        /// One line, unencoded.
        public let subject: String
        /// The text part; for a code its last line is the domain-bound form `@host #code`.
        public let text: String
        /// The HTML part: no remote content, and a link shows where it leads.
        public let html: String
    }

    /// Why a payload cannot become a mail.
    public enum Failure: Error, Equatable, Sendable {
        /// The code is not 4 to 12 ASCII letters and digits.
        case code
        /// The link is neither `https` nor on `localhost`, or has characters a URL has not.
        case link
        /// The host is not a host name.
        case originHost
        /// A template is missing from the binary.
        case template
    }

    private let library: TemplateLibrary

    /// - Throws: a parser error if a template in the binary is broken.
    public init() throws {
        library = try TemplateLibrary(Embedded.templates)
    }

    /// The words for `payload`. Names are cleaned and escaped; codes, links and hosts that are not well-formed are
    /// refused, since they come from this server.
    public func render(_ payload: MailPayload) throws(Failure) -> Rendered {
        var values = Self.values(realmName: payload.realmName)
        switch payload.content {
        case .otp(let code, let minutes):
            guard Self.isCode(code) else { throw .code }
            guard Self.isHost(payload.originHost) else { throw .originHost }
            values["code"] = code
            values["host"] = payload.originHost
            values["validity"] = minutes == 1 ? "1 minute" : "\(minutes) minutes"
        case .magicLink(let link, let minutes, let origin):
            guard Self.isLink(link) else { throw .link }
            values["link"] = link
            if let origin {
                values["application"] = DisplayText.clean(origin.application)
                values["time"] = origin.timeText
                values["address"] = origin.address ?? "an unknown address"
            }
            values["validity"] = minutes == 1 ? "1 minute" : "\(minutes) minutes"
        case .passkeyAdded(let name), .passkeyRemoved(let name):
            let name = DisplayText.clean(name)
            values["passkey"] = name.isEmpty ? "Passkey" : name
        }
        return try render(payload.template, values)
    }

    /// The words of a notice.
    /// - Parameter realmName: The realm or App as people know it.
    func render(_ notice: MailNotice, realmName: String) throws(Failure) -> Rendered {
        var values = Self.values(realmName: realmName)
        values["passkey"] = notice.passkey
        return try render(notice.template.rawValue, values)
    }

    private func render(_ template: String, _ values: [String: String]) throws(Failure) -> Rendered {
        Rendered(
            subject: DisplayText.clean(try apply("\(template).subject", values), limit: 200),
            text: Self.trimmed(try apply("\(template).text", values)),
            html: Self.trimmed(try apply("\(template).html", values))
        )
    }

    private static func values(realmName: String) -> [String: String] {
        let realm = DisplayText.clean(realmName)
        return ["realm": realm.isEmpty ? "Postern" : realm]
    }

    private func apply(_ template: String, _ values: [String: String]) throws(Failure) -> String {
        guard let rendered = library.render(template, values) else { throw .template }
        return rendered
    }

    /// Without blank lines at either end: the code line has to be the last.
    private static func trimmed(_ text: String) -> String {
        var slice = text[...]
        while slice.first?.isWhitespace == true { slice.removeFirst() }
        while slice.last?.isWhitespace == true { slice.removeLast() }
        return String(slice)
    }

    private static func isCode(_ code: String) -> Bool {
        (4...12).contains(code.utf8.count) && code.utf8.allSatisfy(isAlphanumeric)
    }

    private static func isHost(_ host: String) -> Bool {
        (1...253).contains(host.utf8.count) && host.utf8.first != 0x2D
            && host.utf8.allSatisfy { isAlphanumeric($0) || $0 == 0x2D || $0 == 0x2E }
    }

    /// The characters of RFC 3986 §2 without quotes and brackets, after a scheme and host that browsers treat as
    /// secure.
    private static func isLink(_ link: String) -> Bool {
        let prefixes = ["https://", "http://localhost/", "http://localhost:"]
        return link.utf8.count <= 2000 && prefixes.contains { link.hasPrefix($0) }
            && link.utf8.allSatisfy { isAlphanumeric($0) || "-._~:/?#@!$&()*+,;=%".utf8.contains($0) }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
}
