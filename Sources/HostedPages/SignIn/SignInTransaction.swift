import Encoding
import Grants
import Persistence

/// The state of a sign-in between two forms: sealed in the hidden field `tx`, so that opening a page writes nothing.
///
/// Bound to realm, host and browser. What it says was decided by this server; a browser can only present it again.
struct SignInTransaction: Sendable, Equatable {
    /// What it is for, in bytes (``SignInPurpose/encoded(_:)``).
    var purpose: [UInt8]
    /// SHA-256 of the browser cookie.
    let browser: [UInt8]
    /// Seconds since the epoch.
    let expiresAt: Int
    var step: SignInStep
    var fault: InputFault?
    /// The field that the fault is about, where the fault alone does not say it.
    var faultField: FormField?
    /// What came of the last request for another message.
    var report: SendReport?
    /// What the page last heard of its link.
    var link: LinkState?
    /// As typed; shown again.
    var address = ""
    /// The names and consent of a registration as typed; shown again while it asks for them.
    var profile = TypedProfile()
    /// The handle of the last code or link that was asked for.
    var handle = ""
    /// The code that was right, where the second factor is still due.
    var code = ""
    /// The link that was opened in this browser, where the second factor is still due.
    var opened: MagicLink?
    /// The passkey ceremony that the page shows (``PasskeyCeremony/encoded``).
    var ceremony: [UInt8] = []
    /// The session cookie that the browser showed when this began, or got in the course of it: 8 bytes of its hash.
    var session: [UInt8] = []
    /// The session cookie of a realm without single sign-on, which no browser keeps.
    var ownSession = ""
    /// A number that was proven, and signs in only with one more proof.
    var held: HeldNumber?
    /// Messages sent for the present address.
    var sends: UInt8 = 0
    /// Messages that the present handle may still cause, as the last request for one said.
    var sendsLeft: UInt8 = 0
    /// When the last message for the present address was asked for, in seconds since the epoch.
    var sentAt: UInt32 = 0
    /// Addresses that messages were sent to.
    var addresses: UInt8 = 0
    /// Wrong codes for the present handle.
    var wrongCodes: UInt8 = 0
    /// How often the request was answered before this page. So the form of the page is none that was sent before.
    var answers: UInt8 = 0
    /// Facts that a later step needs.
    var facts: Facts = []

    struct Facts: OptionSet, Sendable {
        let rawValue: UInt8
        /// The code is one of a registration that was asked for.
        static let registers = Facts(rawValue: 1)
        /// The page offers to register.
        static let offersRegistration = Facts(rawValue: 2)
        /// The terms were accepted on the page of the registration.
        static let acceptsTerms = Facts(rawValue: 4)
        /// The first factor came by a link: `opened`, or one that was confirmed elsewhere, which its handle asks for.
        static let byLink = Facts(rawValue: 8)
        /// An address is proven by a code, although the browser's user has proven it.
        static let wantsCode = Facts(rawValue: 16)
        /// One more address of the signed-in user is proven.
        static let stepsUp = Facts(rawValue: 32)
        /// The user of `session` proved a factor for this purpose.
        static let proved = Facts(rawValue: 64)
    }

    /// How a link stands.
    enum LinkState: UInt8, Sendable {
        case pending = 1
        case confirmed
        case denied
        case expired
    }

    /// Whether the user of a session proved a factor for this purpose.
    func hasProved(_ cookie: BrowserCookie) -> Bool {
        facts.contains(.proved) && session == Array(cookie.hash.prefix(8))
    }

    /// Counts a message for the present address, and notes what the page says of it. A resend within the cooldown costs
    /// nothing: its handle may still cause as many as before.
    mutating func countSend(left: Int, sameHandle: Bool, at now: Double) {
        let left = UInt8(clamping: left)
        defer { sendsLeft = left }
        if sameHandle, left == sendsLeft {
            report = .tooSoon
            return
        }
        report = sends == 0 ? nil : .again
        sentAt = UInt32(clamping: Int(now))
        if sends == 0 { addresses &+= 1 }
        sends &+= 1
    }

    /// The step that a message leads to. What is new on another page needs no report.
    mutating func arrive(at step: SignInStep) {
        if self.step != step { report = nil }
        self.step = step
    }

    /// The request was answered: the page says who is signed in, and asks whether to go on.
    mutating func askAgain() {
        step = .continueAs
        answers &+= 1
    }

    /// The field that the fault is about.
    var wrongField: FormField? { fault.flatMap { faultField ?? $0.field } }

    /// What came before it proves nothing for a message that is sent now.
    mutating func forgetProof() {
        (code, opened) = ("", nil)
        facts.remove(.byLink)
    }

    /// Counts a wrong code, and says on the next page what is left.
    mutating func countWrongCode(_ rules: SignInRules) {
        step = .code
        wrongCodes &+= 1
        fault = Int(wrongCodes) < rules.tries ? .wrongCode : .noTries
    }

    init(purpose: [UInt8], browser: [UInt8], expiresAt: Int, step: SignInStep) {
        self.purpose = purpose
        self.browser = browser
        self.expiresAt = expiresAt
        self.step = step
    }

    /// How long after its end a page can be begun again, in seconds.
    static let afterlife = 86_400
    /// A purpose has no more bytes.
    static let maximumPurpose = 1200
    /// Bytes that make a value of less than three KiB.
    private static let maximumFields = 2040
    private static let version: UInt8 = 1
    private static let unit = 256

    /// Opens a presented one, expired or not; `nil` when this server did not make it for the host.
    init?(_ presented: String, realm: Realm, host: String, keyring: Keyring) {
        guard presented.utf8.count <= 4096, let sealed = Base64.urlDecode(presented),
            let fields = try? keyring.open(
                sealed, for: .signInTransaction, realm: realm.id, aad: Self.aad(realm, host))
        else { return nil }
        var reader = FieldReader(fields)
        guard reader.byte() == Self.version, let browser = reader.take(32),
            let expiresAt = reader.take(8).flatMap({ $0.bigEndianInteger(as: UInt64.self) }),
            let step = reader.byte().flatMap(SignInStep.init(number:)), let fault = reader.byte(),
            let sends = reader.byte(), let addresses = reader.byte(), let wrongCodes = reader.byte(),
            let facts = reader.byte(), let link = reader.byte(), let purpose = reader.field(),
            let session = reader.field(),
            let address = reader.text(), let handle = reader.text(), let code = reader.text(),
            let ownSession = reader.text(), let opened = reader.field()
        else { return nil }
        self.init(
            purpose: Array(purpose), browser: Array(browser), expiresAt: Int(truncatingIfNeeded: expiresAt), step: step)
        self.fault = InputFault(rawValue: fault)
        (self.sends, self.addresses, self.wrongCodes) = (sends, addresses, wrongCodes)
        self.facts = Facts(rawValue: facts)
        self.link = LinkState(rawValue: link)
        self.session = Array(session)
        (self.address, self.handle, self.code) = (address, handle, code)
        self.ownSession = ownSession
        self.opened = MagicLink(encoded: opened)
        held = reader.field().flatMap { HeldNumber($0) }
        ceremony = Array(reader.field() ?? [])
        sendsLeft = reader.field()?.first ?? 0
        faultField = reader.byte().flatMap(FormField.init)
        report = reader.byte().flatMap(SendReport.init)
        sentAt = reader.take(4).flatMap { $0.bigEndianInteger(as: UInt32.self) } ?? 0
        profile = TypedProfile(
            first: reader.text() ?? "", last: reader.text() ?? "", acceptsTerms: reader.byte() == 1)
        answers = reader.byte() ?? 0
    }

    /// The value of `tx`.
    func text(realm: Realm, host: String, keyring: Keyring) throws(TokenError) -> String {
        guard
            let sealed = try? keyring.seal(
                encoded, for: .signInTransaction, realm: realm.id, aad: Self.aad(realm, host))
        else { throw .unavailable("seal") }
        return Base64.urlEncode(sealed)
    }

    /// What is sealed. Its length tells the length of what was typed to 256 bytes only.
    var encoded: [UInt8] {
        var fields: [UInt8] = []
        fields.reserveCapacity(1024)
        fields.append(Self.version)
        fields += browser
        fields += bigEndianBytes(Int64(expiresAt))
        fields += [
            step.page.number, fault?.rawValue ?? 0, sends, addresses, wrongCodes, facts.rawValue, link?.rawValue ?? 0,
        ]
        func append(_ field: some Collection<UInt8>) {
            let count = UInt16(clamping: field.count)
            fields.append(UInt8(count >> 8))
            fields.append(UInt8(truncatingIfNeeded: count))
            fields.append(contentsOf: field)
        }
        append(purpose)
        append(session)
        for text in [address, handle, code, ownSession] { append(text.utf8) }
        append(opened?.encoded ?? [])
        append(held?.encoded ?? [])
        append(ceremony)
        append([sendsLeft])
        fields += [faultField?.rawValue ?? 0, report?.rawValue ?? 0]
        fields += (0..<4).reversed().map { UInt8(truncatingIfNeeded: sentAt >> (8 * $0)) }
        // A page that asks for no names need not carry them; beside the longest request there is no room.
        let asksNames = step.page.asksNames
        let hasRoom = fields.count + profile.first.utf8.count + profile.last.utf8.count <= Self.maximumFields
        let profile = asksNames && hasRoom ? profile : TypedProfile()
        append(profile.first.utf8)
        append(profile.last.utf8)
        fields += [profile.acceptsTerms ? 1 : 0, answers]
        fields += [UInt8](repeating: 0, count: (Self.unit - fields.count % Self.unit) % Self.unit)
        return fields
    }

    private static func aad(_ realm: Realm, _ host: String) -> [UInt8] {
        Array("sign-in".utf8) + realm.id.bytes + Array(host.utf8)
    }
}

/// Reads fields that a length precedes. Every read is checked: what is opened may have been sealed by another version.
private struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func field() -> ArraySlice<UInt8>? {
        take(2).flatMap { $0.bigEndianInteger(as: UInt16.self) }.flatMap { take(Int($0)) }
    }

    mutating func text() -> String? { field().flatMap { String(validating: $0, as: UTF8.self) } }
}
