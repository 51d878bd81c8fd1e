import FoundationEssentials
import Persistence
import Texts

/// What a message to a phone says.
struct MessageWords: Sendable, Equatable {
    /// What is read or spoken; `nil` for a push.
    var text: String?
    /// The code in it.
    var code: String?
    /// The link in it.
    var link: String?
    /// The host that a code is for.
    var domain: String?
}

/// Makes the texts of messages to phones, in the language of the request.
///
/// A text message fits one segment where its language is written in GSM-7, else two (``SMSLength``). Names give way for
/// that: the client's first, then the marks of the realm's letters, then its end. With a link the words go before a
/// name is cut. The last line of a code's text binds the code to the host, so that a phone offers it there only (WICG,
/// "Origin-bound one-time codes").
struct MessageWriter: Sendable {
    private let catalogue: TextCatalogue

    /// - Throws: an error if a catalogue in the binary is broken.
    init() throws {
        catalogue = try TextCatalogue()
    }

    /// - Parameters:
    ///   - payload: what is secret; `nil` for a notice, whose key is its template.
    ///   - undo: the link in a notice of an added factor.
    /// - Throws: when there is no text for it.
    func words(
        of message: LeasedMessage, _ payload: MessagePayload?, undo: String? = nil
    ) throws(MailRenderer.Failure) -> MessageWords {
        if message.channel == .push { return MessageWords() }
        let language = message.locale.flatMap { Language(tag: $0) } ?? .english
        let texts = catalogue.texts(in: language, replacedBy: message.texts)
        switch payload?.content {
        case .otp(let code, _):
            guard MailRenderer.isCode(code) else { throw .code }
            let host = message.pageHost ?? payload?.originHost
            guard let host, MailRenderer.isHost(host) else { throw .originHost }
            return MessageWords(
                text: payload?.text ?? text(of: message, code: code, host: host, texts, language), code: code,
                domain: host)
        case .magicLink(let link, _, _):
            guard MailRenderer.isLink(link), message.channel != .voice else { throw .link }
            let text = fitting(message, language, tail: "\n\(link)", short: { "\($0):" }) {
                texts.filling(["name": $0])["sms-link"]
            }
            return MessageWords(text: payload?.text ?? text, link: link)
        case .passkeyAdded, .passkeyRemoved, nil:
            let key = "sms-\(message.template)"
            guard catalogue.text(key, in: .english) != nil else { throw .template }
            let tail = undo.map { "\n\($0)" } ?? ""
            return MessageWords(text: fitting(message, language, tail: tail) { texts.filling(["name": $0])[key] })
        }
    }

    private func text(
        of message: LeasedMessage, code: String, host: String, _ texts: Texts, _ language: Language
    ) -> String {
        switch message.channel {
        case .voice:
            // A realm's name must not become an element of a vendor's markup.
            let name = Self.names(of: message)[0].filter { !"<>&\"'".contains($0) }
            return texts.filling(["name": name, "spaced_code": Self.spaced(code)])["voice-code"]
        case .sms:
            let hash = message.smsHash.map { " \($0)" } ?? ""
            return fitting(message, language, tail: "\n@\(host) #\(code)\(hash)") {
                texts.filling(["name": $0, "code": code])["sms-code"]
            }
        default:
            return texts.filling(["name": Self.names(of: message)[0], "code": code])["sms-code"]
        }
    }

    /// The first text that is short enough, with names from the longest to the shortest.
    /// - Parameter short: a text of few words, which leaves a name whole for longer.
    private func fitting(
        _ message: LeasedMessage, _ language: Language, tail: String, short: ((String) -> String)? = nil,
        _ text: (String) -> String
    ) -> String {
        let names = Self.names(of: message)
        let shorter = [40, 30, 20, 12, 6, 3].map { String(names[names.count - 1].prefix($0)) }
        // A name in another script leaves nothing: then the slug names the realm.
        let slugs = [message.realmSlug, String(message.realmSlug.prefix(12)), String(message.realmSlug.prefix(3))]
        let plain = (names + shorter).map(SMSLength.folded).filter { $0.contains(where: \.isLetter) } + slugs
        var written = ""
        func fits(_ words: String) -> Bool {
            written = words + tail
            let most = SMSLength.isGSM(written) || !Self.wide.contains(language) ? 1 : 2
            return SMSLength.segments(written) <= most
        }
        if let short {
            for name in names.flatMap({ [$0, SMSLength.folded($0)] }) where name.contains(where: \.isLetter) {
                if fits(text(name)) || fits(short(name)) { return written }
            }
        }
        for name in names + plain + shorter {
            if fits(text(name)) { return written }
            if let short, fits(short(name)) { return written }
        }
        return written
    }

    /// Languages that are not written in GSM-7.
    private static let wide: Set<Language> = [.polish, .turkish, .japanese, .arabic]

    /// Who sends it: the realm or App with the client that asked, then without it.
    private static func names(of message: LeasedMessage) -> [String] {
        let cleaned = DisplayText.clean(message.realmName, limit: 100)
        let name = cleaned.isEmpty ? "Postern" : cleaned
        guard let client = message.askedBy.map({ DisplayText.clean($0, limit: 100) }), !client.isEmpty, client != name
        else { return [name] }
        return ["\(name) (\(client))", name]
    }

    /// The characters of a code apart, as a voice says them.
    static func spaced(_ code: String) -> String { code.map(String.init).joined(separator: " ") }
}
