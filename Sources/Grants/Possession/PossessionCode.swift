import Crypto
import Encoding
import Persistence

/// The code or link of one message of a transaction.
struct PossessionCode {
    let salt = randomBytes(16)
    let keyed: [UInt8]?
    let codeKey: [UInt8]?
    let linkHash: [UInt8]?
    let match: String?
    let payload: MessagePayload

    /// A code for a number, in the backend's own words if it gave any.
    /// - Parameter words: with a run of `#`.
    init(codeTo phone: String, of transaction: UUIDValue, in words: String?, realm: Realm, keyring: Keyring) {
        let run = words.map(Self.run) ?? 0
        let code = OneTimeCode.random(digits: max(run, realm.possession.otpDigits))
        keyed = Self.keyed(TypedCode(code), transaction, phone, realm, keyring.newest)
        codeKey = keyring.newest.id
        (linkHash, match) = (nil, nil)
        payload = MessagePayload(
            originHost: Realm.host(ofOrigin: realm.issuer),
            content: .otp(code: code, minutes: (realm.possession.otpLifetime + 59) / 60),
            text: words.map { Self.filled($0, code) })
    }

    /// A link. Its first character tells the page which form to show, so that a look at the page needs no database.
    init(linkAskingNumber asksNumber: Bool, in words: String?, realm: Realm) {
        let token = (asksNumber ? PossessionLink.numberMark : "b") + Base64.urlEncode(randomBytes(18)).prefix(23)
        linkHash = PossessionLink.hash(token)
        match = asksNumber ? String(Int.random(in: 10...99)) : nil
        (keyed, codeKey) = (nil, nil)
        let link = PossessionLink.prefix(of: realm) + token
        payload = MessagePayload(
            originHost: Realm.host(ofOrigin: realm.issuer),
            content: .magicLink(link: link, minutes: (realm.possession.linkLifetime + 59) / 60),
            text: words.map { Self.filled($0, link) })
    }

    /// Of a realm, a transaction and a number: neither a dump nor another transaction helps to find or use a code.
    static func keyed(
        _ code: TypedCode, _ transaction: UUIDValue, _ phone: String, _ realm: Realm, _ line: ServerKey
    ) -> [UInt8] {
        line.hmac(
            .codePepper,
            [realm.id.bytes, transaction.bytes, Array(phone.utf8), Array("possession".utf8), Array(code.text.utf8)])
    }

    private static func run(_ text: String) -> Int { text.filter { $0 == "#" }.count }

    private static func filled(_ text: String, _ value: String) -> String {
        guard let first = text.firstIndex(of: "#"), let last = text.lastIndex(of: "#") else { return text }
        return text[..<first] + value + text[text.index(after: last)...]
    }
}

/// A link in a message of a transaction.
public enum PossessionLink {
    static let numberMark = "N"
    static let length = 24

    static func hash(_ token: some StringProtocol) -> [UInt8] { Array(SHA256.hash(data: Array(token.utf8))) }

    static func prefix(of realm: Realm) -> String { realm.issuer + "/p/" }

    /// Whether the page of a link asks for a number. - Parameter token: what follows `/p/`.
    public static func asksNumber(_ token: String) -> Bool { token.hasPrefix(numberMark) }

    /// The longest text that a backend may give: as sent, by any channel that the transaction may use.
    public static let maximumCharacters = 160

    /// Whether a backend's text for a message will do: one run of four to six `#`, and short enough when filled in.
    public static func isMessage(_ text: String, mayBeLink: Bool, realm: Realm) -> Bool {
        let runs = text.split(whereSeparator: { $0 != "#" })
        guard runs.count == 1, let run = runs.first, (4...6).contains(run.count),
            !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return false }
        let rest = text.count - run.count
        let link = mayBeLink ? prefix(of: realm).count + length : 0
        return rest + max(run.count, realm.possession.otpDigits, link) <= maximumCharacters
    }
}
