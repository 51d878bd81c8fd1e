/// What a message is sent by. The text is that of the column `message_outbox.channel` and of the wire.
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

extension Channel: ColumnValue {}
