import CCurl

/// The message on its way through libcurl's callbacks. Confined to the thread of its session.
final class SMTPUpload {
    private let message: [UInt8]
    private let abandoned: AbandonFlag
    private var offset = 0
    /// True while `MAIL FROM` is the last command of the mail that was sent: a refusal then is one of the sender, not
    /// of this mail.
    private(set) var hasNamedSenderOnly = false
    /// True once the answer to `RCPT TO` said that there is no such mailbox.
    private(set) var isDeniedMailbox = false
    private var isNamingRecipient = false
    /// True once libcurl was given all of the message and its end, so that the server may have taken it.
    private(set) var hasFinished = false

    init(_ message: [UInt8], abandoned: AbandonFlag) {
        self.message = message
        self.abandoned = abandoned
    }

    /// True once libcurl was given some of the message.
    var hasStarted: Bool { offset > 0 || hasFinished }
    /// True when the task that waits for the outcome was cancelled.
    var isAbandoned: Bool { abandoned.isRaised }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, message.count - offset)
        if count == 0 {
            hasFinished = true
            return 0
        }
        buffer.copyBytes(from: message[offset..<(offset + count)])
        offset += count
        return count
    }

    /// `CURLOPT_READFUNCTION`; the user data is an `SMTPUpload`.
    static let readCallback: curl_read_callback = { buffer, size, count, userData in
        guard let buffer, let userData else { return Int(CURL_READFUNC_ABORT) }
        let upload = Unmanaged<SMTPUpload>.fromOpaque(userData).takeUnretainedValue()
        return upload.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
    }

    private func sent(command verb: UnsafeRawBufferPointer) {
        if verb.elementsEqual("MAIL".utf8) {
            (hasNamedSenderOnly, isNamingRecipient, isDeniedMailbox) = (true, false, false)
        } else if verb.elementsEqual("RCPT".utf8) {
            (hasNamedSenderOnly, isNamingRecipient) = (false, true)
        } else if verb.elementsEqual("DATA".utf8) {
            (hasNamedSenderOnly, isNamingRecipient) = (false, false)
        }
    }

    private func received(reply line: UnsafeRawBufferPointer) {
        if isNamingRecipient, SMTPVerdict.deniesMailbox(reply: line) { isDeniedMailbox = true }
    }

    /// `CURLOPT_DEBUGFUNCTION`, which is called for every command and answer. Reads only the first four letters of a
    /// command and the codes of an answer.
    static let debugCallback: curl_debug_callback = { _, kind, text, count, userData in
        guard let text, count >= 4, let userData else { return 0 }
        let upload = Unmanaged<SMTPUpload>.fromOpaque(userData).takeUnretainedValue()
        switch kind {
        case CURLINFO_HEADER_OUT: upload.sent(command: UnsafeRawBufferPointer(start: text, count: 4))
        case CURLINFO_HEADER_IN: upload.received(reply: UnsafeRawBufferPointer(start: text, count: count))
        default: break
        }
        return 0
    }

    /// `CURLOPT_XFERINFOFUNCTION`; the user data is an `SMTPUpload`. Anything but 0 ends the transfer.
    static let progressCallback: curl_xferinfo_callback = { userData, _, _, _, _ in
        guard let userData else { return 1 }
        return Unmanaged<SMTPUpload>.fromOpaque(userData).takeUnretainedValue().isAbandoned ? 1 : 0
    }
}
