import CCurl
import Glibc
import Persistence

/// The calls of a ``CallLoop``. Confined to its thread.
final class CallsUnderWay {
    private let multi: CurlMulti
    private let maximum: Int
    /// How many calls of one realm may be under way, because its endpoints may be slow.
    private let share: Int
    private let caFile: String?
    private var waiting: [HTTPOrder] = []
    private var underWay: [UnsafeMutableRawPointer: Exchange] = [:]
    /// How many calls of each realm are under way.
    private var occupied: [UUIDValue: Int] = [:]
    /// Whether a call has ended since `make` last looked at the waiting orders.
    private var hasNewPlace = false
    /// Handles that no call uses, without a connection of their own.
    private var free: [Exchange] = []

    /// With less time than this left, a call is not begun.
    private static let shortestTry = Duration.milliseconds(100)

    init(_ multi: CurlMulti, maximum: Int, caFile: String?) {
        self.multi = multi
        self.maximum = maximum
        share = max(maximum / 4, 1)
        self.caFile = caFile
    }

    var isEmpty: Bool { waiting.isEmpty && underWay.isEmpty }

    /// Begins what may begin, goes on with what can go on, and answers what has ended.
    func make(_ orders: [HTTPOrder]) {
        waiting += orders
        hasNewPlace = false
        waiting.removeAll { order in
            // A call with too little time left would fail, and the operator could bill it.
            let needed = order.call.realm == nil ? Self.shortestTry : order.call.total
            guard hasPlace(for: order) else { return giveUp(order, if: order.deadline - .now < needed) }
            begin(order)
            return true
        }
        guard !underWay.isEmpty else { return }
        multi.perform { handle, code in
            if let exchange = underWay.removeValue(forKey: handle) { end(exchange, code) }
        }
    }

    /// Ends the calls whose callers were cancelled, also those that wait for a place, and answers them.
    func giveUpAbandoned() {
        waiting.removeAll { giveUp($0, if: $0.abandoned.isRaised) }
        for (handle, exchange) in underWay where exchange.order?.abandoned.isRaised == true {
            underWay[handle] = nil
            end(exchange, CURLE_ABORTED_BY_CALLBACK)
        }
    }

    /// Until there may be something to do, or the loop is woken.
    func wait() {
        guard waiting.isEmpty || !hasNewPlace else { return }
        if !multi.wait(underWay.isEmpty ? .seconds(3600) : .seconds(1)) { usleep(10_000) }
    }

    private func hasPlace(for order: HTTPOrder) -> Bool {
        underWay.count < maximum && order.call.realm.map { occupied[$0, default: 0] < share } ?? true
    }

    /// - Returns: whether it was given up.
    private func giveUp(_ order: HTTPOrder, if isOver: Bool) -> Bool {
        if isOver { order.answer(.failed(.cancelled)) }
        return isOver
    }

    private func begin(_ order: HTTPOrder) {
        let left = min(order.call.total, order.deadline - .now)
        guard !order.abandoned.isRaised, left >= Self.shortestTry else { return order.answer(.failed(.cancelled)) }
        guard let exchange = free.popLast() ?? Exchange(), exchange.prepare(order, within: left, caFile: caFile),
            multi.add(exchange.handle)
        else { return order.answer(.failed(.connection)) }
        underWay[exchange.handle.raw] = exchange
        if let realm = order.call.realm { occupied[realm, default: 0] += 1 }
    }

    private func end(_ exchange: Exchange, _ code: CURLcode) {
        multi.remove(exchange.handle)
        if let realm = exchange.order?.call.realm {
            let left = occupied[realm, default: 1] - 1
            occupied[realm] = left > 0 ? left : nil
        }
        hasNewPlace = true
        exchange.end(code)
        if free.count < maximum { free.append(exchange) }
    }
}

/// A handle of libcurl and the call that it makes.
private final class Exchange {
    let handle: CurlHandle
    private(set) var order: HTTPOrder?
    private var transfer: HTTPTransfer?
    private var socket: OutgoingSocket?
    private var headers: UnsafeMutablePointer<curl_slist>?

    init?() {
        guard let handle = CurlHandle() else { return nil }
        self.handle = handle
    }

    deinit { curl_slist_free_all(headers) }

    func prepare(_ order: HTTPOrder, within time: Duration, caFile: String?) -> Bool {
        guard let scheme = order.call.scheme else { return false }
        let socket = OutgoingSocket(scheme: scheme)
        if order.isConnectionOnly {
            guard handle.prepareConnection(to: order.call, by: socket, scheme: scheme, caFile: caFile, within: time)
            else { return false }
        } else {
            let transfer = HTTPTransfer(order.call.body)
            guard let headers = CurlHandle.list(order.call.headers) else { return false }
            self.headers = headers
            guard
                handle.prepare(
                    order.call, transfer, headers, by: socket, scheme: scheme, caFile: caFile, within: time)
            else { return false }
            self.transfer = transfer
        }
        (self.order, self.socket) = (order, socket)
        return true
    }

    /// Answers; the handle is free afterwards.
    func end(_ code: CURLcode) {
        let answer = answer(code)
        let order = order
        handle.reset()
        curl_slist_free_all(headers)
        (self.order, transfer, socket, headers) = (nil, nil, nil, nil)
        order?.answer(answer)
    }

    private func answer(_ code: CURLcode) -> HTTPAnswer {
        let status = handle.reply
        if status >= 200 {
            return .answered(
                status: status, body: transfer?.answer ?? [], isWhole: code == CURLE_OK, retryAfter: handle.retryAfter)
        }
        if transfer?.hasFinished ?? (code == CURLE_OK) { return .inDoubt }
        switch code {
        case let code where code.isTLSFault: return .failed(.tls)
        case CURLE_OPERATION_TIMEDOUT: return .failed(.timeout)
        case CURLE_ABORTED_BY_CALLBACK: return .failed(.cancelled)
        case _ where socket?.hasRefused == true: return .failed(.address)
        default: return .failed(.connection)
        }
    }
}
