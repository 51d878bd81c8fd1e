/// The outcome of one attempt to hand over a message.
public enum DeliveryOutcome: Sendable, Hashable {
    /// The server has taken responsibility for the message (RFC 5321 §4.2.5).
    case accepted
    /// Not taken; trying again later may help.
    case temporary(DeliveryFailure)
    /// Not taken, and it never will be.
    case permanent(DeliveryFailure)
    /// The whole message was sent and the answer is missing: it may have been taken.
    case inDoubt

    /// What it means, for an operator.
    public var sentence: String {
        switch self {
        case .accepted: "taken"
        case .temporary(let failure): "not taken now: \(failure.sentence)"
        case .permanent(let failure): "refused: \(failure.sentence)"
        case .inDoubt: "the answer is missing: it may have been taken"
        }
    }

    /// The case alone, for traces.
    var kind: String {
        switch self {
        case .accepted: "accepted"
        case .temporary: "temporary"
        case .permanent: "permanent"
        case .inDoubt: "inDoubt"
        }
    }
}

/// Why a mail was not taken. Its description is what the column `last_error` and the log hold: a class, never a text of
/// the server, which may repeat the address or the message.
public enum DeliveryFailure: Sendable, Hashable, CustomStringConvertible {
    /// The server answered with this code: SMTP's 400 to 599, or a status of HTTP that is no success.
    case reply(Int)
    /// The server answered to the recipient with this code, 500 to 599, and a status that says that the mailbox is not
    /// there.
    case noSuchMailbox(Int)
    /// The server refused the sender address with this code, 500 to 599. For the server's own address,
    /// ``MailDelivery`` returns ``reply(_:)`` instead, because all realms use that address.
    case sender(Int)
    /// No connection, or it broke before the message was sent.
    case connection
    /// The endpoint's name stands for an address that is never called.
    case address
    /// A time limit passed before the message was sent.
    case timeout
    /// TLS is required and is not offered, or the certificate does not prove the server's name.
    case tls
    /// The server refuses the credentials, or wants some.
    case authentication
    /// The recipient is not a valid envelope address.
    case recipient
    /// The stored payload cannot be opened or rendered.
    case payload
    /// The code or link in it is no longer valid.
    case expired
    /// The answer to a whole message stayed away twice.
    case inDoubt
    /// The attempt was abandoned because the server is stopping.
    case cancelled
    /// The channel has no provider that could be asked.
    case provider
    /// The file with the provider's credential is missing or may not be used.
    case credential
    /// The pre-send hook did not allow it.
    case denied

    /// `3xx` to `5xx` or the name of the case.
    public var description: String {
        switch self {
        case .reply(let code), .noSuchMailbox(let code), .sender(let code):
            code < 400 ? "3xx" : code < 500 ? "4xx" : "5xx"
        case .connection: "connection"
        case .address: "address not allowed"
        case .timeout: "timeout"
        case .tls: "tls"
        case .authentication: "authentication"
        case .recipient: "recipient"
        case .payload: "payload"
        case .expired: "expired"
        case .inDoubt: "in-doubt"
        case .cancelled: "cancelled"
        case .provider: "no-provider"
        case .credential: "credential"
        case .denied: "denied"
        }
    }

    /// What it means, for an operator.
    var sentence: String {
        switch self {
        case .reply(let code): "the server answered \(code)"
        case .noSuchMailbox(let code): "there is no such mailbox (\(code))"
        case .sender(let code): "the sender is refused (\(code))"
        case .connection: "there is no connection"
        case .address: "the address may not be called"
        case .timeout: "there was no answer in time"
        case .tls: "TLS is not offered, or the certificate does not prove the server's name"
        case .authentication: "the user name or password is refused, or one is wanted"
        case .recipient: "the recipient is not an address"
        case .payload, .expired, .inDoubt, .cancelled, .provider, .credential, .denied: description
        }
    }

    /// True when every other mail would fail alike, so that waiting spares the server and the queue. Of replies to a
    /// mail that may be tried again those are 421, with which a server stops, and 5xx, with which it refuses to talk at
    /// all.
    public var concernsServer: Bool {
        switch self {
        case .connection, .timeout, .tls, .authentication: true
        case .reply(let code): code == 421 || code >= 500
        case .noSuchMailbox, .sender, .recipient, .payload, .expired, .inDoubt, .cancelled, .provider, .credential,
            .denied, .address:
            false
        }
    }

    /// True when every other mail of this sender would fail alike.
    var concernsSender: Bool {
        if case .sender = self { true } else { false }
    }
}
