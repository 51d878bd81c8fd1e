/// Who carries messages of a channel: a row of the table `channel`.
public struct Provider: Sendable, Equatable, Decodable {
    /// How a provider is called.
    public enum Kind: String, Sendable, Decodable {
        /// The operator's own endpoint.
        case webhook
        /// A vendor's REST API by template.
        case http
        /// The memory of `postern dev`.
        case outbox
    }

    /// How the parameters of a template are encoded.
    public enum Body: String, Sendable, Decodable {
        /// `application/x-www-form-urlencoded`.
        case form
        /// `application/json`.
        case json
    }

    /// Its name in the realm and channel.
    public let name: String
    /// How it is called.
    public let kind: Kind
    /// Where; `nil` for ``Kind/outbox``.
    public let url: String?
    /// The placeholder `{from}`.
    public let sender: String?
    /// The file of the credential.
    public let secretName: String?
    /// How the credential is presented: `basic`, `bearer` or `header NAME`.
    public let auth: String?
    /// How the parameters are encoded.
    public let body: Body?
    /// The parameters of a template, an object.
    public let fields: TemplateValue?

    private enum CodingKeys: String, CodingKey {
        case name, url, sender, auth, body, fields
        case kind = "provider"
        case secretName = "secret_name"
    }

    /// A provider.
    public init(
        name: String, kind: Kind, url: String? = nil, sender: String? = nil, secretName: String? = nil,
        auth: String? = nil, body: Body? = nil, fields: TemplateValue? = nil
    ) {
        self.name = name
        self.kind = kind
        self.url = url
        self.sender = sender
        self.secretName = secretName
        self.auth = auth
        self.body = body
        self.fields = fields
    }
}

/// A JSON value whose texts may hold placeholders.
public indirect enum TemplateValue: Sendable, Equatable, Codable {
    case text(String)
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case list([TemplateValue])
    case members([String: TemplateValue])
    case null

    /// Reads any JSON value.
    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let list = try? value.decode([TemplateValue].self) {
            self = .list(list)
        } else {
            self = .members(try value.decode([String: TemplateValue].self))
        }
    }

    /// Writes the value.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .text(let text): try value.encode(text)
        case .flag(let flag): try value.encode(flag)
        case .integer(let integer): try value.encode(integer)
        case .number(let number): try value.encode(number)
        case .list(let list): try value.encode(list)
        case .members(let members): try value.encode(members)
        case .null: try value.encodeNil()
        }
    }

    /// The same value with each text in it, names of members aside, replaced.
    public func mapTexts(_ replace: (String) -> String) -> TemplateValue {
        switch self {
        case .text(let text): .text(replace(text))
        case .list(let list): .list(list.map { $0.mapTexts(replace) })
        case .members(let members): .members(members.mapValues { $0.mapTexts(replace) })
        case .flag, .integer, .number, .null: self
        }
    }
}

/// Whom to ask before a message is sent: a row of the table `pre_send_hook`.
public struct PreSendHook: Sendable, Equatable, Decodable {
    /// Where to ask.
    public let url: String
    /// Whether a message is sent when there is no usable answer.
    public let allowsOnFailure: Bool

    private enum CodingKeys: String, CodingKey {
        case url
        case onFailure = "on_failure"
    }

    /// A hook.
    public init(url: String, allowsOnFailure: Bool) {
        self.url = url
        self.allowsOnFailure = allowsOnFailure
    }

    /// Reads the row; anything but `allow` denies.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        url = try members.decode(String.self, forKey: .url)
        allowsOnFailure = try members.decode(String.self, forKey: .onFailure) == "allow"
    }
}
