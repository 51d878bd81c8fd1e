/// Where a code or a link is sent.
public enum Address: Sendable, Hashable, Codable {
    /// An e-mail address, as typed.
    case email(String)
    /// A phone number in E.164 form: `+` and 7 to 15 digits.
    case phone(String, channel: PhoneChannel = .sms)
}

/// What carries a code to a phone. A link always goes by SMS.
public enum PhoneChannel: String, Sendable, Codable { case sms, voice, whatsapp }

extension Address: Discreet {
    /// The kind; not the address.
    public var shown: [(String, any Sendable)] {
        switch self {
        case .email: [("kind", "email")]
        case .phone(_, let channel): [("kind", "phone"), ("channel", channel.rawValue)]
        }
    }
}

extension Address {
    /// The members that name the address in a request for a code.
    var members: [String: JSONValue] {
        switch self {
        case .email(let address): ["Email": .string(address)]
        case .phone(let number, let channel): ["Phone": .string(number), "Channel": .string(channel.rawValue)]
        }
    }

    /// The address of such members; `nil` if there is none.
    init?(members: [String: JSONValue]) {
        if let address = members["Email"]?.string {
            self = .email(address)
        } else if let number = members["Phone"]?.string {
            self = .phone(number, channel: members["Channel"]?.string.flatMap(PhoneChannel.init) ?? .sms)
        } else {
            return nil
        }
    }
}

/// The name of a person who registers; ``AppInfo`` says which names the app's server wants.
public struct Names: Sendable, Hashable {
    /// - Parameters:
    ///   - first: 1 to 100 characters.
    ///   - last: 1 to 100 characters.
    public init(first: String? = nil, last: String? = nil) {
        self.first = first
        self.last = last
    }

    /// The given name.
    public var first: String?
    /// The family name.
    public var last: String?
}

extension Names: Discreet {
    /// Nothing: names are personal data.
    public var shown: [(String, any Sendable)] { [] }
}

extension Names {
    /// The members that name the person in a request for a code.
    var members: [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        members["FirstName"] = first.map(JSONValue.string)
        members["LastName"] = last.map(JSONValue.string)
        return members
    }
}
