public import Persistence

/// What people may type into the address field of a page, and where a message then goes. Nothing about an account is
/// looked up.
public struct TypedAddresses: Sendable, Equatable {
    /// Whether an e-mail address may be typed.
    public let takesMail: Bool
    /// What may carry a message to a phone, the default first; empty: no phone number may be typed.
    public let channels: [Channel]
    private let phones: PhonePolicy?
    private let rules: AddressRules
    private let app: String?

    /// E-mail addresses of any domain.
    public static let mail = TypedAddresses(takesMail: true, channels: [], phones: nil, rules: AddressRules(), app: nil)

    /// What a realm accepts.
    public init(_ realm: Realm, takesMail: Bool, takesPhones: Bool) {
        let sends = takesPhones && !(realm.phones?.regions.isEmpty ?? true)
        self.init(
            takesMail: takesMail,
            channels: sends ? Channel.phones.filter(realm.channels.contains) : [],
            phones: realm.phones, rules: realm.addressRules, app: realm.app?.slug)
    }

    private init(takesMail: Bool, channels: [Channel], phones: PhonePolicy?, rules: AddressRules, app: String?) {
        self.takesMail = takesMail
        self.channels = channels
        self.phones = phones
        self.rules = rules
        self.app = app
    }

    /// The same, or less of it.
    public func taking(mail: Bool, phones takesPhones: Bool) -> TypedAddresses {
        TypedAddresses(
            takesMail: takesMail && mail, channels: takesPhones ? channels : [], phones: phones, rules: rules, app: app)
    }

    /// Why nothing is sent, alike for every address of its kind.
    public enum Fault: Error, Sendable {
        case addressInvalid
        /// Its domain is not accepted.
        case addressRefused
        case phoneInvalid
        /// Its country is not among the realm's, or its prefix is denied.
        case phoneUnsupported
    }

    /// Whether a phone number may be typed.
    public var takesPhones: Bool { !channels.isEmpty }

    /// Messages of one handle to a phone.
    public var phoneSends: Int { phones?.sends ?? 1 }

    /// Reads what was typed. - Parameter channel: what carries the message to a phone; `nil`: the default.
    public func read(_ typed: String, by channel: Channel? = nil) throws(Fault) -> MessageAddress {
        guard let first = channels.first, !takesMail || !typed.isEmpty && !typed.utf8.contains(UInt8(ascii: "@")) else {
            guard takesMail, let address = EmailAddress(typed) else { throw .addressInvalid }
            guard rules.accept(address.key, app: app) else { throw .addressRefused }
            return .email(address)
        }
        guard let number = PhoneNumber(typed: typed, defaultRegion: phones?.defaultRegion) else { throw .phoneInvalid }
        guard let phones, phones.regions.contains(number.region), !phones.isDenied(number.text) else {
            throw .phoneUnsupported
        }
        return .phone(number, channel.flatMap { channels.contains($0) ? $0 : nil } ?? first)
    }
}
