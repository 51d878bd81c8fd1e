import Logging
import NIOCore
import Synchronization

/// One accepted connection as ``OpenConnections`` sees it.
final class OpenConnection: Sendable {
    let channel: any Channel
    let address: IPAddress
    /// What connections are counted by.
    let source: String
    let isTrusted: Bool
    /// How long it may stay without a request.
    let keepAlive: TimeAmount
    /// Since when it waits for its client; 0 while a request is being answered.
    private let waitingSince = Atomic<UInt64>(NIODeadline.now().uptimeNanoseconds)

    init(_ channel: any Channel, address: IPAddress, isTrusted: Bool, keepAlive: TimeAmount) {
        self.channel = channel
        self.address = address
        self.isTrusted = isTrusted
        self.keepAlive = keepAlive
        source = address.limitKey
    }

    func isBusy() {
        waitingSince.store(0, ordering: .relaxed)
    }

    func isWaiting() {
        waitingSince.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed)
    }

    /// `nil` for a connection that must not be dropped.
    var droppableSince: UInt64? {
        let since = waitingSince.load(ordering: .relaxed)
        return isTrusted || since == 0 ? nil : since
    }
}

/// How long a connection without a request stays open: longer than the client or the proxy keeps it. Else one of them
/// sends a request on a connection that is being closed, and a balancer answers 502.
public struct KeepAlive: Sendable {
    private let own: TimeAmount
    private let proxies: TimeAmount

    /// 75 s; 620 s for trusted proxies, since balancers keep theirs for up to ten minutes.
    public init() {
        (own, proxies) = (.seconds(75), .seconds(620))
    }

    /// The same for all. - Parameter seconds: as set.
    public init(seconds: Int) {
        (own, proxies) = (.seconds(Int64(seconds)), .seconds(Int64(seconds)))
    }

    func time(isTrusted: Bool) -> TimeAmount { isTrusted ? proxies : own }
}

/// Tells a connection that waits for its client to close.
struct MakeRoomEvent: Sendable {}

/// Tells a connection that its next answer is its last.
struct LastRequestEvent: Sendable {}

/// All connections of a listener, bounded in total and for each source that is not a trusted proxy.
///
/// When all places are taken, a source that has fewer connections than another gets a place of that other: no source
/// can keep the others out. The longest waiting connections of the source with the most go first, never one whose
/// request is being answered.
final class OpenConnections: Sendable {
    /// Why a connection was closed at once.
    enum Refusal: String, Sendable {
        case process, source
    }

    private struct State {
        var open: [ObjectIdentifier: OpenConnection] = [:]
        var sources: [String: Int] = [:]
        var isStopping = false
        var isDraining = false
        var onEmpty: [CheckedContinuation<Void, Never>] = []
        var nextScan = NIODeadline.uptimeNanoseconds(0)
        var nextLog = NIODeadline.uptimeNanoseconds(0)
    }

    private static let scanInterval = TimeAmount.milliseconds(5)
    private static let droppedAtOnce = 16

    private let maximum: Int
    private let maximumPerSource: Int
    private let trusted: [CIDR]
    private let keepAlive: KeepAlive
    private let metrics: TransportMetrics
    private let logger: Logger
    private let state = Mutex(State())

    init(
        maximum: Int, maximumPerSource: Int, trusted: [CIDR], keepAlive: KeepAlive = KeepAlive(),
        metrics: TransportMetrics, logger: Logger
    ) {
        self.maximum = maximum
        self.maximumPerSource = maximumPerSource
        self.trusted = trusted
        self.keepAlive = keepAlive
        self.metrics = metrics
        self.logger = logger
    }

    /// Takes an accepted connection in. - Returns: `false` when it must be closed at once.
    func admit(_ channel: any Channel) -> Bool {
        guard let address = channel.remoteAddress?.ipAddress.flatMap({ IPAddress($0) }) else { return false }
        let isTrusted = trusted.contains { $0.contains(address) }
        let connection = OpenConnection(
            channel, address: address, isTrusted: isTrusted, keepAlive: keepAlive.time(isTrusted: isTrusted))
        let (refusal, dropped) = state.withLock { state -> (Refusal?, [OpenConnection]) in
            guard !state.isDraining else { return (.process, []) }
            let ofSource = state.sources[connection.source] ?? 0
            if !isTrusted, ofSource >= maximumPerSource { return (.source, []) }
            var dropped: [OpenConnection] = []
            if state.open.count >= maximum {
                dropped = Self.victims(&state, ofNewcomer: isTrusted ? 0 : ofSource)
                if dropped.isEmpty { return (.process, []) }
                for victim in dropped { Self.remove(victim, &state) }
            }
            state.open[ObjectIdentifier(channel)] = connection
            state.sources[connection.source, default: 0] += 1
            return (nil, dropped)
        }
        for victim in dropped {
            metrics.countDropped()
            victim.channel.eventLoop.execute {
                victim.channel.pipeline.fireUserInboundEventTriggered(MakeRoomEvent())
            }
        }
        if let refusal {
            refused(refusal, connection)
            return false
        }
        metrics.countOpened()
        channel.closeFuture.whenComplete { _ in self.closed(connection) }
        return true
    }

    /// The connection of a channel that was admitted and is still open.
    func connection(of channel: any Channel) -> OpenConnection? {
        state.withLock { $0.open[ObjectIdentifier(channel)] }
    }

    /// Whether each connection is to end after its next answer.
    var isStopping: Bool { state.withLock(\.isStopping) }

    /// Lets all connections, also new ones, end after their next answer; those that wait for a request stay open.
    func answerLastRequests() {
        let open = state.withLock { state in
            state.isStopping = true
            return Array(state.open.values)
        }
        for connection in open {
            connection.channel.eventLoop.execute {
                connection.channel.pipeline.fireUserInboundEventTriggered(LastRequestEvent())
            }
        }
    }

    /// Lets no more in, and lets the open ones end after the answer under way.
    func drain() {
        for connection in close() {
            connection.channel.eventLoop.execute {
                connection.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
            }
        }
    }

    /// Lets no more in and closes all.
    func closeAll() {
        for connection in close() { connection.channel.close(promise: nil) }
    }

    /// Returns when no connection is open.
    func empty() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if !state.open.isEmpty { state.onEmpty.append(continuation) }
                return state.open.isEmpty
            }
            if isEmpty { continuation.resume() }
        }
    }

    private func close() -> [OpenConnection] {
        state.withLock { state in
            state.isDraining = true
            return Array(state.open.values)
        }
    }

    private func closed(_ connection: OpenConnection) {
        metrics.countClosed()
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            Self.remove(connection, &state)
            guard state.open.isEmpty else { return [] }
            defer { state.onEmpty = [] }
            return state.onEmpty
        }
        for continuation in waiting { continuation.resume() }
    }

    private static func remove(_ connection: OpenConnection, _ state: inout State) {
        guard state.open.removeValue(forKey: ObjectIdentifier(connection.channel)) != nil else { return }
        let rest = (state.sources[connection.source] ?? 1) - 1
        state.sources[connection.source] = rest > 0 ? rest : nil
    }

    /// Connections to close for a newcomer whose source has `count`: of the source with the most, if that has at least
    /// two more. Looks through all connections, so not more often than every ``scanInterval``.
    private static func victims(_ state: inout State, ofNewcomer count: Int) -> [OpenConnection] {
        let now = NIODeadline.now()
        guard now >= state.nextScan else { return [] }
        state.nextScan = now + scanInterval
        var candidates: [String: [(since: UInt64, connection: OpenConnection)]] = [:]
        for connection in state.open.values {
            guard let since = connection.droppableSince else { continue }
            candidates[connection.source, default: []].append((since, connection))
        }
        let sources = state.sources
        let most = candidates.max { (sources[$0.key] ?? 0) < (sources[$1.key] ?? 0) }
        guard let most, (sources[most.key] ?? 0) >= count + 2 else { return [] }
        return most.value.sorted { $0.since < $1.since }.prefix(droppedAtOnce).map(\.connection)
    }

    private func refused(_ refusal: Refusal, _ connection: OpenConnection) {
        metrics.countRefused(refusal)
        let isDue = state.withLock { state in
            guard !state.isDraining, state.nextLog <= .now() else { return false }
            state.nextLog = .now() + .minutes(1)
            return true
        }
        guard isDue else { return }
        logger.warning(
            "too many connections: new ones are closed",
            metadata: [
                "limit": "\(refusal == .process ? maximum : maximumPerSource)", "per": "\(refusal.rawValue)",
                "address": "\(connection.address)",
            ])
    }
}
