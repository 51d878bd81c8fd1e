public import Persistence

/// Where a code or link is sent: a mailbox, or a phone by one of its channels.
public enum MessageAddress: Sendable, Hashable {
    case email(EmailAddress)
    /// The channel is one of `Channel.phones`.
    case phone(PhoneNumber, Channel)

    /// As typed, or in E.164 form.
    public var text: String {
        switch self {
        case .email(let address): address.text
        case .phone(let number, _): number.text
        }
    }

    /// The look-up key (`address_key`); keys of the two kinds are never equal.
    public var key: String {
        switch self {
        case .email(let address): address.key
        case .phone(let number, _): number.text
        }
    }

    /// What carries the message; `nil`: mail.
    var channel: Channel? {
        if case .phone(_, let channel) = self { channel } else { nil }
    }

    /// The country that a number counts to.
    var region: String? {
        if case .phone(let number, _) = self { number.region } else { nil }
    }

    /// The limits of a request by this address: those of `policy`, or for phones one policy for all that send to them.
    func policy(or policy: RateLimit.Policy) -> RateLimit.Policy {
        channel == nil ? policy : .phoneOTP
    }

    /// The messages that one handle may cause, resends included.
    func sends(in realm: Realm) -> Int {
        channel == nil ? Self.mailsPerHandle : realm.phones?.sends ?? 1
    }

    private static let mailsPerHandle = 5

    /// Authentication methods (RFC 8176) of a code or link that was sent by a channel.
    package static func amr(by channel: Channel?) -> [String] {
        (channel ?? .email).amr
    }
}

extension Realm {
    /// Why nothing is sent to a phone number, alike for every number of its kind.
    public enum PhoneRefusal: Error, Sendable {
        /// The realm sends to no phone, or has no provider of the channel.
        case channelUnavailable
        /// The number's country is not among the realm's, or its prefix is denied.
        case notSupported
    }

    /// Whether a message may go to a number. Nothing about an account is looked up.
    public func requireSending(to number: PhoneNumber, by channel: Channel) throws(PhoneRefusal) {
        guard let phones, !phones.regions.isEmpty, channels.contains(channel) else { throw .channelUnavailable }
        guard phones.regions.contains(number.region), !phones.isDenied(number.text) else { throw .notSupported }
    }
}

extension RateLimit.Policy {
    /// Codes and links to phones, for all endpoints that ask for them.
    static let phoneOTP = Self(rawValue: "phone-otp")
}
