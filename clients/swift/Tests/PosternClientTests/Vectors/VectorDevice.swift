import Foundation

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The device, the network and the other processes of a case: virtual time, a store, requests that wait for their answers.
actor VectorDevice {
    struct Sent {
        let request: URLRequest
        var answer: CheckedContinuation<(Data, HTTPURLResponse), any Error>?
    }
    private struct Sleeper {
        let id: UUID
        let due: TimeInterval
        let continuation: CheckedContinuation<Void, any Error>
    }

    nonisolated let time: VectorTime
    private(set) var sent: [Sent] = []
    private(set) var revoked: [String] = []
    private var sleepers: [Sleeper] = []
    var data: Data?
    var isLocked = false
    var writeFails = false
    var isOffline = false
    /// Counts the starts of the app: what belongs to an earlier one gets nothing any more.
    private(set) var life = 0
    /// What calls did that a step can wait for.
    nonisolated let events = VectorEvents()

    init(epoch: TimeInterval) { time = VectorTime(epoch: epoch) }

    func set(data: Data?) { self.data = data }
    func set(isLocked: Bool) { self.isLocked = isLocked }
    func set(writeFails: Bool) { self.writeFails = writeFails }
    func set(isOffline: Bool) { self.isOffline = isOffline }

    func restart() {
        life += 1
        for index in sent.indices { take(answerOf: index)?.resume(throwing: URLError(.networkConnectionLost)) }
        for sleeper in sleepers { sleeper.continuation.resume(throwing: CancellationError()) }
        sleepers = []
    }

    // MARK: What a client sees

    func check(_ life: Int) throws { guard life == self.life, !isLocked else { throw StoreLocked() } }

    func write(_ data: Data?, _ life: Int) throws {
        try check(life)
        guard !writeFails else { throw CocoaError(.fileWriteOutOfSpace) }
        self.data = data
    }

    func send(_ request: URLRequest, _ life: Int) async throws -> (Data, HTTPURLResponse) {
        guard life == self.life else { throw URLError(.networkConnectionLost) }
        if request.url?.path == "/connect/revoke" {
            guard !isOffline else { throw URLError(.notConnectedToInternet) }
            revoked.append(request.formFields["token"]?.string ?? "")
            return try reply(request, ["status": 200])
        }
        events.add()
        return try await withCheckedThrowingContinuation { sent.append(Sent(request: request, answer: $0)) }
    }

    func sleep(_ seconds: TimeInterval, _ life: Int) async throws {
        guard life == self.life else { throw CancellationError() }
        let id = UUID()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                events.add()
                sleepers.append(Sleeper(id: id, due: time.uptime + seconds, continuation: $0))
                if Task.isCancelled { wake(id) }
            }
        } onCancel: {
            Task { await self.wake(id) }
        }
    }

    private func wake(_ id: UUID) {
        guard let index = sleepers.firstIndex(where: { $0.id == id }) else { return }
        sleepers.remove(at: index).continuation.resume(throwing: CancellationError())
    }

    // MARK: What steps do

    /// Seconds until the first of those who wait goes on.
    var pause: TimeInterval? { sleepers.map(\.due).min().map { $0 - time.uptime } }

    func elapse(_ seconds: TimeInterval) {
        time.elapse(seconds)
        let due = sleepers.filter { $0.due <= time.uptime + 1e-6 }
        sleepers.removeAll { sleeper in due.contains { $0.id == sleeper.id } }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// - Parameter number: of the request, from 1; the oldest open one without.
    /// - Returns: whether there was one.
    func answer(_ answer: JSONValue, to number: Int?) throws -> Bool {
        guard let index = number.map({ $0 - 1 }) ?? sent.firstIndex(where: { $0.answer != nil }), index < sent.count,
            let continuation = take(answerOf: index)
        else { return false }
        if answer.string == "lost" {
            continuation.resume(throwing: URLError(.networkConnectionLost))
        } else {
            continuation.resume(returning: try reply(sent[index].request, answer))
        }
        return true
    }

    private func take(answerOf index: Int) -> CheckedContinuation<(Data, HTTPURLResponse), any Error>? {
        defer { sent[index].answer = nil }
        return sent[index].answer
    }

    private func reply(_ request: URLRequest, _ answer: JSONValue) throws -> (Data, HTTPURLResponse) {
        var fields = (answer["headers"]?.object ?? [:]).compactMapValues(\.string)
        if answer["json"] != nil { fields["Content-Type"] = "application/json" }
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: answer["status"]?.integer ?? 0, httpVersion: nil, headerFields: fields)
        else { throw URLError(.badURL) }
        return (answer["json"]?.data ?? Data((answer["text"]?.string ?? "").utf8), response)
    }
}

/// The clocks of a case.
final class VectorTime: Sendable {
    private let epoch: TimeInterval
    private let lock = NSLock()
    nonisolated(unsafe) private var passed: TimeInterval = 0
    nonisolated(unsafe) private var shift: TimeInterval = 0

    init(epoch: TimeInterval) { self.epoch = epoch }

    var uptime: TimeInterval { lock.withLock { passed } }
    var now: Date { Date(timeIntervalSince1970: lock.withLock { epoch + passed + shift }) }
    func elapse(_ seconds: TimeInterval) { lock.withLock { passed += seconds } }
    func move(_ seconds: TimeInterval) { lock.withLock { shift += seconds } }
}

/// The calls that have sent, slept, or have a place in the queue.
final class VectorEvents: Sendable {
    /// The call that the present task works for.
    @TaskLocal static var call: String?
    private let lock = NSLock()
    nonisolated(unsafe) private var calls: Set<String> = []

    func has(_ call: String) -> Bool { lock.withLock { calls.contains(call) } }
    func add() { if let call = Self.call { lock.withLock { _ = calls.insert(call) } } }
}

/// Lets in one after another.
actor VectorQueue {
    private let events: VectorEvents
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ events: VectorEvents) { self.events = events }

    func enter() async {
        events.add()
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() { if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() } }
}

/// What one start of the app sees of the device.
struct VectorApp: SessionStore, Transport {
    let device: VectorDevice
    let life: Int
    private let queue: VectorQueue

    init(_ device: VectorDevice) async {
        (self.device, life, queue) = (device, await device.life, VectorQueue(device.events))
    }

    func read() async throws -> Data? {
        try await device.check(life)
        return await device.data
    }
    func write(_ data: Data?) async throws { try await device.write(data, life) }
    func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        await queue.enter()
        let result: Result<T, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await queue.leave()
        return try result.get()
    }
    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) { try await device.send(request, life) }

    var surroundings: Surroundings {
        var made = Surroundings()
        let (device, life, time) = (device, life, device.time)
        made.now = { time.now }
        made.uptime = { time.uptime }
        made.sleep = { try await device.sleep($0, life) }
        return made
    }
}

extension URLRequest {
    /// The fields of a form by name.
    var formFields: [String: JSONValue] {
        let pairs = String(decoding: httpBody ?? Data(), as: UTF8.self).split(separator: "&").map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                $0.replacingOccurrences(of: "+", with: " ").removingPercentEncoding ?? ""
            }
        }
        return Dictionary(pairs.map { ($0[0], .string($0.count > 1 ? $0[1] : "")) }) { $1 }
    }

    /// As steps describe it.
    var described: JSONValue {
        var members: [String: JSONValue] = [
            "method": .string(httpMethod ?? ""), "url": .string(url?.absoluteString ?? ""),
        ]
        members["authorization"] = value(forHTTPHeaderField: "Authorization").map(JSONValue.string)
        let type = value(forHTTPHeaderField: "Content-Type") ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") { members["form"] = .object(formFields) }
        if type.hasPrefix("application/json") { members["json"] = httpBody.flatMap { JSONValue($0) } }
        return .object(members)
    }
}
