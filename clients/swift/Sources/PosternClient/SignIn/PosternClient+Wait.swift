import Foundation

/// The polls of one request. Callers share them.
struct Poll {
    /// Seconds between two polls.
    var interval: TimeInterval
    /// Before this, by `uptime`, the server wants no poll.
    var due: TimeInterval = 0
    var secondFactor: SecondFactor?
    var waiting: [UUID: CheckedContinuation<User, any Error>] = [:]
    var task: Task<Void, Never>?
}

extension PosternClient {
    /// Waits until the link was confirmed, the approval given or the code typed, and signs in. Any number of callers may
    /// wait, also after the app was started anew.
    ///
    /// - Throws: ``PosternError/denied``, ``PosternError/expired``: the request is over. ``PosternError/secondFactorNeeded``,
    ///   ``PosternError/secondFactorWrong``: wait again with it. ``PosternError/unavailable(retryAfter:)`` when the request
    ///   has run out without an answer.
    public func wait(for pending: PendingSignIn, secondFactor: SecondFactor? = nil) async throws -> User {
        let id = pending.id
        guard let request = try await pendingRequest(id), request.signIn != nil else { throw PosternError.expired }
        let caller = UUID()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard !Task.isCancelled else { return continuation.resume(throwing: PosternError.cancelled) }
                // Of polls without a caller, only those count that came a moment ago.
                polls = polls.filter { $0.value.task != nil || $0.value.due > surroundings.uptime() }
                var poll = polls[id] ?? Poll(interval: request.interval)
                poll.waiting[caller] = continuation
                if let secondFactor { poll.secondFactor = secondFactor }
                if poll.task == nil { poll.task = Task { await self.runPoll(id) } }
                polls[id] = poll
            }
        } onCancel: {
            Task { await self.leave(poll: id, caller) }
        }
    }

    /// Ends the waiting for a request.
    func end(poll id: String, _ outcome: Result<User, any Error>) {
        guard let poll = polls[id] else { return }
        poll.task?.cancel()
        polls[id]?.task = nil
        polls[id]?.secondFactor = nil
        polls[id]?.waiting = [:]
        for caller in poll.waiting.values { caller.resume(with: outcome) }
    }

    private func leave(poll id: String, _ caller: UUID) {
        polls[id]?.waiting.removeValue(forKey: caller)?.resume(throwing: PosternError.cancelled)
        if polls[id]?.waiting.isEmpty == true { end(poll: id, .failure(PosternError.cancelled)) }
    }

    private func runPoll(_ id: String) async {
        while !Task.isCancelled, let poll = polls[id] {
            let pause = poll.due - surroundings.uptime()
            if pause > 0 {
                do { try await surroundings.sleep(pause) } catch { return }
                continue
            }
            let outcome = await pollOnce(id, poll.secondFactor)
            // Only now: the next poll arrives later than this one's answer, whatever the network does.
            let interval = polls[id]?.interval ?? poll.interval
            polls[id]?.due = surroundings.uptime() + max(outcome.pause, interval)
            guard !Task.isCancelled else { return }
            if let result = outcome.result { return end(poll: id, result) }
        }
    }

    /// - Returns: what callers get, or how long the server wants to be left alone at least.
    private func pollOnce(
        _ id: String, _ secondFactor: SecondFactor?
    ) async -> (result: Result<User, any Error>?, pause: TimeInterval) {
        do {
            guard let request = try await pendingRequest(id) else { throw PosternError.expired }
            do {
                let form = pollForm(request) + [secondFactor?.field].compactMap { $0 }
                let answer = try await token(form, as: .poll)
                return (.success(try await establish(answer, finishing: id)), 0)
            } catch PosternError.refused("authorization_pending", _, _) {
                return (nil, 0)
            } catch PosternError.refused("slow_down", _, _) {
                let longer = min((polls[id]?.interval ?? request.interval) + 5, 60)
                polls[id]?.interval = longer
                return (nil, 0)
            } catch PosternError.unavailable(let pause) where goesOn(request, pause) {
                return (nil, pause ?? 0)
            } catch PosternError.rateLimited(let pause) where goesOn(request, pause) {
                return (nil, pause)
            } catch PosternError.expired where opening.contains(id) {
                // The link is being redeemed right here.
                return (nil, 0)
            }
        } catch {
            // No caller was told.
            if Task.isCancelled { return (.failure(error), 0) }
            if case .denied? = error as? PosternError { try? await change { $0.forget(pending: id) } }
            if case .expired? = error as? PosternError { try? await change { $0.forget(pending: id) } }
            return (.failure(error), 0)
        }
    }

    private func pollForm(_ request: PendingRequest) -> [(String, String)] {
        switch request.knownKind {
        case .approval: [("grant_type", GrantType.approval), ("auth_req_id", request.handle)]
        case .device: [("grant_type", GrantType.deviceCode), ("device_code", request.handle)]
        default: [("grant_type", GrantType.link), ("auth_session", request.handle), scopeField]
        }
    }

    /// Whether a poll after this pause may still bring something. What was confirmed in its last moment can be polled for
    /// a minute more.
    private func goesOn(_ request: PendingRequest, _ pause: TimeInterval?) -> Bool {
        surroundings.now().addingTimeInterval(pause ?? 0) < request.expiresAt.addingTimeInterval(60)
    }
}
