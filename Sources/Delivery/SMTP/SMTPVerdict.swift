import CCurl

/// The outcome, derived from libcurl's code, the server's last reply and the progress of the message.
enum SMTPVerdict {
    /// - Parameters:
    ///   - code: libcurl's result.
    ///   - reply: The last reply code, 0 if there was none.
    ///   - refusesSender: Whether the last command was `MAIL FROM`.
    ///   - deniesMailbox: Whether the answer to `RCPT TO` said that there is no such mailbox.
    ///   - started: Whether some of the message was sent.
    ///   - finished: Whether all of it was, so that the server may have taken it.
    static func outcome(
        _ code: CURLcode, reply: Int, refusesSender: Bool = false, deniesMailbox: Bool = false, started: Bool,
        finished: Bool
    ) -> DeliveryOutcome {
        switch code {
        case CURLE_OK: return .accepted
        case CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: return .temporary(.authentication)
        case let code where code.isTLSFault: return .temporary(.tls)
        case CURLE_OPERATION_TIMEDOUT: return finished ? .inDoubt : .temporary(.timeout)
        case CURLE_ABORTED_BY_CALLBACK: return finished ? .inDoubt : .temporary(.cancelled)
        default: break
        }
        switch reply {
        // RFC 4954 §6: credentials or TLS wanted; the operator's to repair, not the mail's fault
        case 530, 534, 535, 538:
            return .temporary(.authentication)
        case 400..<500: return .temporary(.reply(reply))
        case 500..<600:
            // A refused greeting or EHLO concerns this server's standing, not this mail (RFC 5321 §3.1).
            let refusesService = !started && (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_REMOTE_ACCESS_DENIED)
            if refusesService { return .temporary(.reply(reply)) }
            // The sender address is wrong or has a bad reputation: an administrator can repair that.
            if refusesSender { return .temporary(.sender(reply)) }
            return .permanent(deniesMailbox ? .noSuchMailbox(reply) : .reply(reply))
        default: return finished ? .inDoubt : .temporary(.connection)
        }
    }

    /// Whether an answer to `RCPT TO` says, by its enhanced status (RFC 3463 §3.2, §3.3; RFC 7505 §4.2), that the
    /// mailbox does not exist. The reply code alone does not say so: 550 is also used for policies, reputation and
    /// relaying.
    static func deniesMailbox(reply line: some Collection<UInt8>) -> Bool {
        let start = String(decoding: line.prefix(12), as: UTF8.self)
        let words = start.split(maxSplits: 2) { $0 == " " || $0 == "-" || $0.isNewline }
        return words.count > 1 && words[0].first == "5" && missingMailbox.contains(String(words[1]))
    }

    /// No such mailbox, no such system, bad syntax, moved away, null MX; mailbox disabled.
    private static let missingMailbox: Set<String> = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]
}
