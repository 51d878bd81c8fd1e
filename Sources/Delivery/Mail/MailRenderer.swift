import Encoding
import Persistence
import Texts

/// Turns a ``MessagePayload`` or a ``MailNotice`` into subject, text and HTML. The templates are part of the binary and
/// parsed once.
public struct MailRenderer: Sendable {
    /// The words of a mail.
    public struct Rendered: Sendable, Equatable {
        /// One line, unencoded.
        public let subject: String
        /// The text part; for a code its last line is the domain-bound form `@host #code`.
        public let text: String
        /// The HTML part. Its only remote content is the logo of the realm's pages, on the realm's own host. A link
        /// stands below its button, as text.
        public let html: String
    }

    /// Why a payload cannot become a mail.
    public enum Failure: Error, Equatable, Sendable {
        /// The code is not 4 to 12 ASCII letters and digits.
        case code
        /// The link is neither `https` nor on `localhost` or a host below it, or has characters a URL has not.
        case link
        /// The host is not a host name.
        case originHost
        /// A template is missing from the binary.
        case template
    }

    /// In whose name and in which language a mail speaks.
    public struct Voice: Sendable {
        /// The realm or App as people know it.
        let name: String
        /// The client that asked, as people know it; `nil` when it is not known or has the name of the realm or App.
        let client: String?
        /// A BCP 47 tag; English where there are no texts in it.
        let language: Language
        /// Texts of the realm or App in the place of ours, by key.
        let own: [String: String]
        /// Of buttons.
        let accent: Colour
        /// The address of a picture with the name; `nil`: the name stands there.
        let logo: String?

        /// - Parameters:
        ///   - client: the display name of the client that asked.
        ///   - locale: a BCP 47 tag.
        ///   - accent: `#rrggbb`; in place of any other text that of our own pages.
        public init(
            name: String, client: String? = nil, locale: String? = nil, own: [String: String] = [:],
            accent: String? = nil, logo: String? = nil
        ) {
            let cleaned = DisplayText.clean(name)
            self.name = cleaned.isEmpty ? "Postern" : cleaned
            let asked = DisplayText.clean(client ?? "")
            self.client = asked.isEmpty || asked == self.name ? nil : asked
            language = locale.flatMap { Language(tag: $0) } ?? .english
            self.own = own
            self.accent = accent.flatMap(Colour.init) ?? .accent
            self.logo = logo.flatMap { MailRenderer.isLink($0) ? $0 : nil }
        }

        /// As a message of the outbox is to speak.
        init(of message: LeasedMessage, client: String? = nil) {
            self.init(
                name: message.realmName, client: client, locale: message.locale, own: message.texts,
                accent: message.accent, logo: message.logo)
        }
    }

    private let library: TemplateLibrary
    private let catalogue: TextCatalogue

    /// - Throws: a parser error if a template or a catalogue in the binary is broken.
    public init() throws {
        library = try TemplateLibrary(Embedded.templates)
        catalogue = try TextCatalogue()
    }

    /// The words for `payload`. Names are cleaned and escaped; codes, links and hosts that are not well-formed are
    /// refused, since they come from this server.
    func render(_ payload: MessagePayload, _ voice: Voice) throws(Failure) -> Rendered {
        let texts = catalogue.texts(in: voice.language, replacedBy: voice.own)
        var values: [String: String] = [:]
        var shown: [String: String] = [:]
        switch payload.content {
        case .otp(let code, let minutes):
            guard Self.isCode(code) else { throw .code }
            guard Self.isHost(payload.originHost) else { throw .originHost }
            shown = ["code": code, "host": payload.originHost]
            values = ["code": code, "validity": Self.validity(minutes, texts)]
            if let client = voice.client {
                shown["application"] = client
                values["client"] = client
            }
        case .magicLink(let link, let minutes, let origin):
            guard Self.isLink(link) else { throw .link }
            shown["link"] = link
            values["validity"] = Self.validity(minutes, texts)
            if let origin {
                shown["application"] = DisplayText.clean(origin.application)
                values = Self.values(of: origin, texts).merging(values) { _, own in own }
            }
        case .passkeyAdded(let name), .passkeyRemoved(let name):
            let name = DisplayText.clean(name)
            shown["passkey"] = name.isEmpty ? "Passkey" : name
        }
        return try render(payload.template, voice, texts, values, shown)
    }

    /// The words of a notice. - Parameter undo: the link that takes an added factor away again.
    func render(_ notice: MailNotice, _ voice: Voice, undo: String? = nil) throws(Failure) -> Rendered {
        let texts = catalogue.texts(in: voice.language, replacedBy: voice.own)
        var shown = ["passkey": notice.passkey, "identifier": DisplayText.clean(notice.identifier)]
        var values: [String: String] = [:]
        if let device = notice.device {
            // The person who added the device chose its name, and may be the one that the mail warns of.
            let name = DisplayText.clean(device.name ?? "")
            let isShown = !name.isEmpty && !DisplayText.holdsAddress(name)
            shown["device"] = isShown ? "“\(name)”" : texts["mail-device-unnamed"]
            values = Self.values(of: device.origin, texts)
            values["device"] = shown["device"]
        }
        if let undo {
            guard Self.isLink(undo) else { throw .link }
            shown["undo"] = undo
        }
        return try render(notice.template.rawValue, voice, texts, values, shown)
    }

    /// For texts that say by which client, when, and from where.
    private static func values(of origin: RequestOrigin, _ texts: Texts) -> [String: String] {
        [
            "client": DisplayText.clean(origin.application), "time": texts.time(origin.time),
            "address": origin.address ?? texts["mail-unknown-address"],
        ]
    }

    /// - Parameters:
    ///   - values: for the placeholders of texts.
    ///   - shown: for the template itself.
    private func render(
        _ template: String, _ voice: Voice, _ texts: Texts, _ values: [String: String], _ shown: [String: String]
    ) throws(Failure) -> Rendered {
        var context: [String: Any] = shown
        context["t"] = texts.filling(values.merging(["name": voice.name]) { own, _ in own })
        context["realm"] = voice.name
        context["language"] = voice.language.tag
        context["direction"] = voice.language.direction
        context["accent"] = voice.accent.text
        context["onAccent"] = voice.accent.textColour.text
        if let logo = voice.logo { context["logo"] = logo }
        return Rendered(
            subject: DisplayText.clean(try apply("\(template).subject", context), limit: 200),
            text: Self.trimmed(try apply("\(template).text", context)),
            html: Self.trimmed(try apply("\(template).html", context))
        )
    }

    private static func validity(_ minutes: Int, _ texts: Texts) -> String {
        minutes == 1 ? texts["mail-minute"] : texts.filling(["count": "\(minutes)"])["mail-minutes"]
    }

    private func apply(_ template: String, _ values: [String: Any]) throws(Failure) -> String {
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

    static func isCode(_ code: String) -> Bool {
        (4...12).contains(code.utf8.count) && code.utf8.allSatisfy(isAlphanumeric)
    }

    static func isHost(_ host: String) -> Bool {
        (1...253).contains(host.utf8.count) && host.utf8.first != 0x2D
            && host.utf8.allSatisfy { isAlphanumeric($0) || $0 == 0x2D || $0 == 0x2E }
    }

    /// The characters of RFC 3986 §2 without quotes and brackets, after a scheme and host that browsers treat as
    /// secure.
    static func isLink(_ link: String) -> Bool {
        link.utf8.count <= 2000 && SecureAddress.holds(link)
            && link.utf8.allSatisfy { isAlphanumeric($0) || "-._~:/?#@!$&()*+,;=%".utf8.contains($0) }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
}
