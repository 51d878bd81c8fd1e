import CCurl

/// One connection to the SMTP server. libcurl allows one thread at a time per handle; the executor is that thread.
actor SMTPSession {
    private let url: SMTPURL
    private let limits: SMTPTransport.Limits
    private nonisolated let executor = BlockingExecutor(label: "postern.smtp")
    private var handle: CurlHandle?

    /// With less time than this left, a try is not begun.
    private static let shortestTry = Duration.milliseconds(100)

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(url: SMTPURL, limits: SMTPTransport.Limits) {
        self.url = url
        self.limits = limits
    }

    /// Sends one message and waits for the server's answer.
    ///
    /// A server may have closed the connection since the last mail. When that shows before any of the message was sent,
    /// the message is sent once more over a new connection. Both tries together are over at `deadline` and take no
    /// longer than `limits.total`.
    func send(
        _ message: [UInt8], from sender: MailAddress, to recipient: MailAddress,
        before deadline: ContinuousClock.Instant,
        unless abandoned: AbandonFlag
    ) -> DeliveryOutcome {
        let upload = SMTPUpload(message, abandoned: abandoned)
        let end = min(deadline, .now + limits.total)
        let first = perform(upload, from: sender, to: recipient, freshConnection: false, before: end)
        guard first.usedKeptConnection, !upload.hasStarted, case .temporary(let failure) = first.outcome,
            failure.concernsServer || failure.concernsSender, failure != .timeout, end - .now >= Self.shortestTry
        else { return first.outcome }
        return perform(upload, from: sender, to: recipient, freshConnection: true, before: end).outcome
    }

    /// Greets the server, secures the connection and authenticates; sends NOOP in place of a mail.
    func probe() -> DeliveryOutcome {
        close()
        guard let handle = CurlHandle() else { return .temporary(.connection) }
        guard handle.configure(for: url, limits: limits, total: limits.total),
            handle.set(CURLOPT_CUSTOMREQUEST, "NOOP"),
            handle.set(CURLOPT_NOBODY, 1)
        else { return .temporary(.connection) }
        let code = handle.perform()
        return SMTPVerdict.outcome(code, reply: handle.reply, started: false, finished: false)
    }

    /// Says good-bye to the server if connected.
    func close() {
        handle = nil
    }

    private func perform(
        _ upload: SMTPUpload, from sender: MailAddress, to recipient: MailAddress, freshConnection: Bool,
        before end: ContinuousClock.Instant
    ) -> (outcome: DeliveryOutcome, usedKeptConnection: Bool) {
        let left = end - .now
        guard !upload.isAbandoned, left >= Self.shortestTry else { return (.temporary(.cancelled), false) }
        if handle == nil { handle = CurlHandle() }
        guard let code = handle?.send(upload, from: sender, to: recipient, url, limits, left, freshConnection)
        else {
            return (.temporary(.connection), false)
        }
        let outcome = SMTPVerdict.outcome(
            code, reply: handle?.reply ?? 0, refusesSender: upload.hasNamedSenderOnly,
            deniesMailbox: upload.isDeniedMailbox, started: upload.hasStarted, finished: upload.hasFinished)
        let usedKeptConnection = handle?.connectionsMade == 0
        if outcome != .accepted {
            // After a failure the state of the conversation is unknown, and the server may be one that never answers:
            // do not wait for it to answer QUIT.
            handle?.hangUp()
            handle = nil
        }
        return (outcome, usedKeptConnection)
    }
}
