import Foundation

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Plays the steps of a case of refresh.json or sign-in.json with the library.
actor VectorStage {
    private let file: VectorFile
    private let vector: VectorCase
    private let device: VectorDevice
    private var client: PosternClient
    private var calls: [String: (step: JSONValue, task: Task<Void, Never>, outcome: Outcome)] = [:]
    private var states: [JSONValue] = []
    private var listening: Task<Void, Never>?
    private var checked = 0
    private var proofs: Set<String> = []
    var requests = VectorRequests()

    /// How a call ended.
    final class Outcome: Sendable {
        private let lock = NSLock()
        nonisolated(unsafe) private var stored: JSONValue?
        var value: JSONValue? { lock.withLock { stored } }
        func set(_ value: JSONValue) { lock.withLock { stored = value } }
    }

    init(_ file: VectorFile, _ vector: VectorCase) async throws {
        (self.file, self.vector) = (file, vector)
        device = VectorDevice(epoch: file.members["epoch"]?.number ?? 0)
        let app = await VectorApp(device)
        client = try Self.client(file, vector, app)
        let document = try VectorDocument.make(file.named(vector.members["store"] ?? [:]), file, vector)
        await device.set(data: document.data)
        await listen()
    }

    private static func client(_ file: VectorFile, _ vector: VectorCase, _ app: VectorApp) throws -> PosternClient {
        guard let origin = URL(string: file.members["origin"]?.string ?? "") else {
            throw VectorDifference("no origin")
        }
        var configuration = PosternConfiguration(
            origin: origin, clientID: file.members["clientId"]?.string ?? "")
        configuration.scopes = VectorDocument.scopes(vector)
        configuration.key = vector.members["client"]?["key"]?.string == "none" ? .none : .software
        (configuration.store, configuration.transport) = (app, app)
        return try PosternClient(configuration, app.surroundings)
    }

    private func listen() async {
        listening?.cancel()
        let stream = client.states
        var isFirst = true
        listening = Task {
            for await state in stream {
                if isFirst { isFirst = false } else { self.states.append(state.described) }
            }
        }
        _ = await client.state
    }

    func play() async throws {
        for (number, step) in (vector.members["steps"]?.array ?? []).enumerated() {
            do {
                try await play(file.named(step).object ?? [:])
            } catch {
                let text = String(decoding: step.data, as: UTF8.self).prefix(300)
                throw VectorDifference("\(vector.name): step \(number + 1), \(text): \(error)")
            }
        }
        for _ in 0..<50 { await Task.yield() }
        let sent = await device.sent
        guard checked == sent.count else {
            throw VectorDifference("\(vector.name): a request too many: \(sent[checked].request.described.data)")
        }
        listening?.cancel()
        await device.restart()
    }

    private func play(_ step: [String: JSONValue]) async throws {
        if let name = step["call"]?.string { return await call(name, .object(step)) }
        if let name = step["cancel"]?.string { calls[name]?.task.cancel() }
        if let expected = step["request"] { try await request(expected) }
        if let answer = step["answer"] {
            if let seconds = step["after"]?.number { await device.elapse(seconds) }
            guard try await device.answer(answer, to: step["to"]?.integer) else {
                throw VectorDifference("no request waits")
            }
        }
        if let bounds = step["pause"]?.array { try await pause(bounds.compactMap(\.number), step) }
        if let seconds = step["pass"]?.number { await device.elapse(seconds) }
        if let seconds = step["wall"]?.number { device.time.move(seconds) }
        if let name = step["result"]?.string {
            guard let outcome = calls[name]?.outcome else { throw VectorDifference("no such call") }
            try await eventually {
                outcome.value != nil
            } orSay: {
                "the call has not ended"
            }
            try match(.object(step.filter { $0.key != "result" }), outcome.value, "result")
        }
        if let facts = step["store"] {
            try await eventually { try await match(facts, self.facts(), "store", isPart: true) }
        }
        if let state = step["state"] {
            try await eventually { try await match(state, self.client.state.described, "state") }
        }
        if let states = step["states"] { try await eventually { try match(states, .array(self.states), "states") } }
        if let facts = step["other"]?.object {
            let document = try VectorDocument.changed(try Document(await device.data), .object(facts), file, vector)
            await device.set(data: document.data)
        }
        if let isLocked = step["locked"]?.bool { await device.set(isLocked: isLocked) }
        if let writeFails = step["writeFails"]?.bool { await device.set(writeFails: writeFails) }
        if let isOffline = step["offline"]?.bool { await device.set(isOffline: isOffline) }
        if let tokens = step["revoked"]?.strings {
            let device = device
            try await eventually {
                await device.revoked.sorted() == tokens.sorted()
            } orSay: {
                "revoked: \(await device.revoked)"
            }
        }
        if step["restart"]?.bool == true {
            await device.restart()
            for call in calls.values { call.task.cancel() }
            client = try Self.client(file, vector, await VectorApp(device))
            await listen()
        }
    }

    private func facts() async throws -> JSONValue {
        VectorDocument.facts(try Document(await device.data), requests.names)
    }

    // MARK: Calls

    private func call(_ name: String, _ step: JSONValue) async {
        let (outcome, client, requests) = (Outcome(), client, requests)
        let joins = calls.values.contains { $0.outcome.value == nil && isSame($0.step, step) }
        let task = Task {
            await VectorEvents.$call.withValue(name) {
                do {
                    let (result, made) = try await requests.perform(step, client)
                    if let made { self.requests.keep(made, name) }
                    outcome.set(result)
                } catch {
                    outcome.set(VectorDocument.described(error))
                }
            }
        }
        calls[name] = (step, task, outcome)
        // The call gets as far as it can. Of one that joins another nothing is to be seen.
        let end = ContinuousClock.now + (joins ? .milliseconds(300) : .seconds(10))
        while outcome.value == nil, !device.events.has(name), ContinuousClock.now < end {
            try? await Task.sleep(for: .microseconds(200))
        }
    }

    private func isSame(_ one: JSONValue, _ other: JSONValue) -> Bool {
        ["do", "audience", "of"].allSatisfy { one[$0] == other[$0] }
    }

    // MARK: Requests and time

    private func request(_ expected: JSONValue) async throws {
        let (device, checked) = (device, checked)
        try await eventually {
            await device.sent.count > checked
        } orSay: {
            "no such request was sent"
        }
        let request = await device.sent[checked].request
        self.checked += 1
        var members = expected.object ?? [:]
        let proof = members.removeValue(forKey: "proof")
        try match(.object(members), request.described, "request")
        try check(proof, request)
    }

    private func check(_ expected: JSONValue?, _ request: URLRequest) throws {
        guard let text = request.value(forHTTPHeaderField: "DPoP") else {
            guard expected == nil else { throw VectorDifference("there is no proof") }
            return
        }
        guard let expected else { throw VectorDifference("there is a proof") }
        let parts = text.split(separator: ".").map { Base64URL.decode(String($0)).flatMap { JSONValue($0) } }
        guard parts.count == 3, let header = parts[0], let claims = parts[1], let jti = claims["jti"]?.string,
            proofs.insert(jti).inserted
        else { throw VectorDifference("the proof is not new") }
        var right: [String: JSONValue] = [
            "jti": ["$": "string"], "iat": ["$": "any"], "nonce": expected["nonce"] ?? ["$": "any"],
        ]
        right["htm"] = .string(request.httpMethod ?? "")
        right["htu"] = .string(String((request.url?.absoluteString ?? "").prefix { $0 != "?" && $0 != "#" }))
        if let token = request.value(forHTTPHeaderField: "Authorization")?.split(separator: " ").last {
            right["ath"] = .string(Base64URL.encode(Digest.sha256(Data(token.utf8))))
        }
        try match(.object(right), claims, "proof")
        try match(["typ": "dpop+jwt", "alg": "ES256", "jwk": VectorDocument.publicKey], header, "proof")
        if let bounds = expected["iat"]?.array?.compactMap(\.number) {
            let issued = (claims["iat"]?.number ?? 0) - (file.members["epoch"]?.number ?? 0)
            guard issued >= bounds[0], issued <= bounds[1] else { throw VectorDifference("iat is \(issued)") }
        }
    }

    private func pause(_ bounds: [Double], _ step: [String: JSONValue]) async throws {
        let (device, checked) = (device, checked)
        let isOptional = step["maybe"]?.bool == true
        try await eventually {
            if await device.pause != nil { return true }
            return isOptional ? await device.sent.count > checked : false
        } orSay: {
            "the client does not wait for a time"
        }
        guard let pause = await device.pause else { return }
        guard pause >= bounds[0], pause <= bounds[1] else { throw VectorDifference("it waits \(pause) s") }
        await device.elapse(step["passes"]?.number ?? pause)
    }

    private func eventually(
        _ holds: () async -> Bool, orSay text: () async -> String
    ) async throws {
        let end = ContinuousClock.now + .seconds(10)
        while !(await holds()) {
            guard ContinuousClock.now < end else { throw VectorDifference(await text()) }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    private func eventually(_ body: () async throws -> Void) async throws {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            do { return try await body() } catch { if ContinuousClock.now > end { throw error } }
            try await Task.sleep(for: .microseconds(200))
        }
    }
}
