import CCurl

/// Makes one call at a time. libcurl allows one thread at a time per handle; the executor is that thread.
actor HTTPSession {
    private let caFile: String?
    private nonisolated let executor = BlockingExecutor(label: "postern.http")
    /// With the connection of the last call that may be repeated.
    private var kept: CurlHandle?

    /// With less time than this left, a call is not begun.
    private static let shortestTry = Duration.milliseconds(100)

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(caFile: String?) {
        self.caFile = caFile
    }

    func post(
        _ call: HTTPCall, before deadline: ContinuousClock.Instant, unless abandoned: AbandonFlag
    ) -> HTTPAnswer {
        let left = min(call.total, deadline - .now)
        guard !abandoned.isRaised, left >= Self.shortestTry else { return .failed(.cancelled) }
        guard let scheme = call.scheme, let handle = call.mayRepeat ? kept.take() ?? CurlHandle() : CurlHandle() else {
            return .failed(.connection)
        }
        let transfer = HTTPTransfer(call.body, abandoned: abandoned)
        let code = handle.post(call, transfer, scheme: scheme, caFile: caFile, within: left)
        let status = handle.reply
        if status >= 200 {
            let retryAfter = handle.retryAfter
            if call.mayRepeat, code == CURLE_OK { kept = consume handle }
            return .answered(status: status, body: transfer.answer, isWhole: code == CURLE_OK, retryAfter: retryAfter)
        }
        return transfer.hasFinished ? .inDoubt : .failed(Self.failure(code))
    }

    func connect(to call: HTTPCall) -> DeliveryFailure? {
        guard let scheme = call.scheme, let handle = CurlHandle() else { return .connection }
        let code = handle.connect(to: call, scheme: scheme, caFile: caFile)
        return code == CURLE_OK ? nil : Self.failure(code)
    }

    private static func failure(_ code: CURLcode) -> DeliveryFailure {
        switch code {
        case let code where code.isTLSFault: .tls
        case CURLE_OPERATION_TIMEDOUT: .timeout
        case CURLE_ABORTED_BY_CALLBACK: .cancelled
        default: .connection
        }
    }
}
