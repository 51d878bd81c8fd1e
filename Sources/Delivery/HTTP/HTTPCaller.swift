import Synchronization

/// Posts to endpoints of operators and vendors: no redirect is followed, TLS is verified, plain `http` goes to this
/// machine only, and 64 KiB of an answer are read.
///
/// Each call under way has a thread of its own, so an endpoint that answers slowly, or never, holds no thread that
/// Swift concurrency needs.
public final class HTTPCaller: Sendable {
    private let sessions: [HTTPSession]
    private let free: Mutex<[Int]>

    /// - Parameters:
    ///   - sessions: the most calls at a time; more callers wait.
    ///   - caFile: authorities in place of the system's.
    public init(sessions: Int = 32, caFile: String? = nil) {
        let count = max(sessions, 1)
        self.sessions = (0..<count).map { _ in HTTPSession(caFile: caFile) }
        free = Mutex(Array((0..<count).reversed()))
    }

    /// Whether an endpoint with this URL would be called at all.
    public static func mayCall(_ url: String) -> Bool { HTTPCall(url: url, headers: [], body: []).scheme != nil }

    /// Makes a call. Never throws: every failure is an answer. When the task is cancelled the call is abandoned.
    /// - Parameter deadline: when it must be over, besides its own limits.
    public func post(_ call: HTTPCall, before deadline: ContinuousClock.Instant) async -> HTTPAnswer {
        let abandoned = AbandonFlag()
        let index = free.withLock { $0.popLast() }
        let session = sessions[index ?? Int.random(in: sessions.indices)]
        defer { if let index { free.withLock { $0.append(index) } } }
        return await withTaskCancellationHandler {
            await session.post(call, before: deadline, unless: abandoned)
        } onCancel: {
            abandoned.raise()
        }
    }

    /// Connects to the endpoint without asking anything, for `postern doctor`. - Returns: what failed.
    public func connect(to url: String) async -> DeliveryFailure? {
        await sessions[0].connect(to: HTTPCall(url: url, headers: [], body: []))
    }
}
