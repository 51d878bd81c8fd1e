/// A mail to be queued by the statement that is the reason for it.
public struct SealedMessage: Sendable {
    /// The row's id, which the payload is sealed for.
    let id: UUIDValue
    /// Sealed.
    let payload: [UInt8]

    static let arguments: [Argument] = ["mail_id", "payload"]

    var arguments: Arguments { ["mail_id": id, "payload": payload] }
}

extension MessagePayload {
    /// A new mail with this payload.
    public func sealed(under keyring: Keyring, realm: UUIDValue) throws -> SealedMessage {
        let id = UUIDValue.random()
        return SealedMessage(id: id, payload: try sealed(under: keyring, realm: realm, mail: id))
    }
}
