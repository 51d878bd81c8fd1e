/// Posts to endpoints of operators and vendors: no redirect is followed, TLS is verified, plain `http` goes to this
/// machine only, and 64 KiB of an answer are read.
///
/// All calls of a caller are made by one thread of its own, which waits for none of them: an endpoint that answers
/// slowly, or never, holds nothing but its place. Calls of one realm have a quarter of the places at most.
public final class HTTPCaller: Sendable {
    private let loop: CallLoop?

    /// - Parameters:
    ///   - sessions: the most calls at a time; more callers wait.
    ///   - caFile: authorities in place of the system's.
    ///   - isBackground: whether the thread lets requests go first.
    public init(sessions: Int = 32, caFile: String? = nil, isBackground: Bool = false) {
        loop = CallLoop(maximum: max(sessions, 1), caFile: caFile, isBackground: isBackground)
    }

    deinit { loop?.stop() }

    /// Runs tasks on the thread of the calls, while the caller exists; they must not block. `nil`: there is no thread.
    public var executor: (any TaskExecutor)? { loop }

    /// Whether an endpoint with this URL would be called at all.
    public static func mayCall(_ url: String) -> Bool { HTTPCall(url: url, headers: [], body: []).scheme != nil }

    /// Makes a call. Never throws: every failure is an answer. When the task is cancelled the call is abandoned.
    /// - Parameter deadline: when it must be over, the wait for a place included, besides its own limits.
    public func post(_ call: HTTPCall, before deadline: ContinuousClock.Instant) async -> HTTPAnswer {
        await make(call, before: deadline, isConnectionOnly: false)
    }

    /// Connects to the endpoint without asking anything, for `postern doctor`. - Returns: what failed.
    public func connect(to url: String) async -> DeliveryFailure? {
        let call = HTTPCall(url: url, headers: [], body: [])
        guard case .failed(let failure) = await make(call, before: .now + call.total, isConnectionOnly: true) else {
            return nil
        }
        return failure
    }

    private func make(
        _ call: HTTPCall, before deadline: ContinuousClock.Instant, isConnectionOnly: Bool
    ) async -> HTTPAnswer {
        guard let loop else { return .failed(.connection) }
        let abandoned = AbandonFlag()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.make(
                    HTTPOrder(
                        call: call, deadline: deadline, isConnectionOnly: isConnectionOnly, abandoned: abandoned,
                        answer: { continuation.resume(returning: $0) }))
            }
        } onCancel: {
            abandoned.raise()
            loop.abandon()
        }
    }
}
