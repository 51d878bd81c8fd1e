/// What a message is sent by. The text is that of the column `message_outbox.channel` and of the wire.
///
/// `postern.known_channel` has a row for each with the same facts, in the same order.
public enum Channel: String, Sendable, CaseIterable, Codable {
    /// Mail.
    case email
    /// Text message to a phone.
    case sms
    /// Call to a phone that speaks the message.
    case voice
    /// WhatsApp message to a phone.
    case whatsapp
    /// Notification to an app on a device.
    case push
}

extension Channel {
    /// What a message arrives at.
    public enum Reach: String, Sendable {
        case mailbox, phone, device
    }

    /// What a message arrives at, and the authentication methods (RFC 8176) of a code that came by it.
    private var facts: (reaches: Reach, amr: [String]) {
        switch self {
        case .email: (.mailbox, ["otp"])
        case .sms: (.phone, ["otp", "sms"])
        case .voice: (.phone, ["otp", "tel"])
        case .whatsapp: (.phone, ["otp"])
        case .push: (.device, ["otp"])
        }
    }

    /// What a message arrives at.
    public var reaches: Reach { facts.reaches }

    /// Authentication methods (RFC 8176) of a code that came by it.
    public var amr: [String] { facts.amr }

    /// Every channel.
    public static let all = allCases

    /// Those that carry codes to phones, the default first.
    public static let phones = all.filter { $0.reaches == .phone }
}

extension Channel: ColumnValue {}
