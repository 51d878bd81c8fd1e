import Foundation

extension PosternClient {
    /// An access token with at least a minute left, or a third of its life if that is less. It is refreshed when needed:
    /// callers share one refresh, and one that is cancelled leaves it running.
    ///
    /// - Throws: ``PosternError/signedOut(_:)`` when there is no session, or when it has ended;
    ///   ``PosternError/unavailable(retryAfter:)`` when the server could not be asked: the session lives.
    public func accessToken(for audience: Audience = .default) async throws -> AccessToken {
        if Task.isCancelled { throw PosternError.cancelled }
        let document = try await document()
        guard let session = document.session else { throw PosternError.signedOut(document.reason) }
        _ = try await key(for: .session, in: document)
        let audience = audience.served(by: session.scopes)
        if let token = usable(audience, in: document) { return token }
        let name = "\(session.id) \(audience.name)"
        if let flight = flights[name] { return try await flight.value() }
        let flight = SharedTask { try await self.fly(session.id, audience, name) }
        flights[name] = flight
        return try await flight.value()
    }

    /// The token of an audience, if it is still good.
    func usable(_ audience: Audience, in document: Document) -> AccessToken? {
        guard let stored = document.tokens.last(where: { $0.audience == audience.name }),
            !refused.contains(stored.value)
        else { return nil }
        let token = stored.token
        let life = token.expiresAt.timeIntervalSince(stored.issuedAt)
        let left: TimeInterval
        if let end = ends[stored.value] {
            left = end - surroundings.uptime()
        } else {
            // Another process received it. The clock may have been set since.
            let now = surroundings.now()
            guard stored.issuedAt <= now else { return nil }
            left = token.expiresAt.timeIntervalSince(now)
        }
        // Without a refresh token it is the only one there is.
        let needed = document.session?.refreshToken == nil ? 0 : min(60, life / 3)
        return left > 0 && left >= needed ? token : nil
    }

    /// Notes when a token ends, by a clock that cannot be set.
    func remember(_ answer: TokenAnswer) {
        let now = surroundings.uptime()
        ends = ends.filter { $0.value > now }
        ends[answer.token.value] = now + answer.token.expiresAt.timeIntervalSince(answer.issuedAt)
    }

    private func fly(_ session: String, _ audience: Audience, _ name: String) async throws -> AccessToken {
        defer { flights[name] = nil }
        do {
            return try await store.exclusively { try await self.refresh(session, audience) }
        } catch {
            throw failure(error)
        }
    }

    /// Refreshes until the server decides or the patience ends, always with the newest token that the store has.
    private func refresh(_ id: String, _ audience: Audience) async throws -> AccessToken {
        var patience = Patience(until: surroundings.uptime() + Patience.ofRefresh)
        var former: String?
        while true {
            let document = try await document()
            guard let session = document.session, session.id == id else {
                throw PosternError.signedOut(document.session == nil ? document.reason : .byUser)
            }
            if let token = usable(audience, in: document) { return token }
            guard let sent = session.refreshToken else { throw try await runOut(id, audience, document) }
            if let former, former != sent { log("superseded") }
            former = sent
            switch try await refreshOutcome(sent, audience) {
            case .rotated(let answer):
                guard answer.idToken.map({ isNext($0, in: session) }) ?? true else {
                    try await wait(&patience, nil)
                    continue
                }
                try await keep(answer, of: id, sent: sent, audience)
                return answer.token
            case .lost(let retryAfter): try await wait(&patience, retryAfter)
            case .ended:
                if try await end(id, sent: sent) { throw PosternError.signedOut(.ended) }
            case .refused(let error): throw error
            }
        }
    }

    /// Whether an ID token of a refresh is of the same session (OpenID Connect Core §12.2).
    private nonisolated func isNext(_ token: IDToken, in session: StoredSession) -> Bool {
        let (user, former) = (token.user, session.user)
        return user?.id == former?.id && user?.sessionID == former?.sessionID
            && token.audiences.contains(configuration.clientID)
    }

    /// Stores what a refresh brought, before anybody sees the access token.
    private func keep(_ answer: TokenAnswer, of id: String, sent: String, _ audience: Audience) async throws {
        let bound = answer.token.type == .dpop ? try await key(for: .session, in: document())?.thumbprint : nil
        let kept: Set<String>? = try await change { document in
            guard var session = document.session, session.id == id else {
                if let token = answer.refreshToken { document.toRevoke.append(token) }
                return nil
            }
            // Another process may have stored a newer generation meanwhile: it stays.
            if session.refreshToken == sent {
                session.refreshToken = answer.refreshToken ?? sent
                if let bound { session.boundKey = bound }
                if let token = answer.idToken?.text {
                    session.idToken = token
                    document.hint = token
                }
                document.session = session
            }
            document.keep(StoredToken(answer.token, audience: audience.name, issuedAt: answer.issuedAt))
            return Set(document.tokens.map(\.value))
        }
        guard let kept else {
            revokeInBackground()
            let document = try await document()
            throw PosternError.signedOut(document.session == nil ? document.reason : .byUser)
        }
        remember(answer)
        // What the store has no more is not handed out anyway.
        refused.formIntersection(kept)
        log("refresh", ["audience": audience.name])
    }

    /// Ends the session if the refused token is its newest one. - Returns: whether it has ended.
    private func end(_ id: String, sent: String) async throws -> Bool {
        try await change { document in
            guard let session = document.session, session.id == id, session.refreshToken == sent else { return false }
            document.endSession(.ended)
            return true
        }
    }

    /// The session has no refresh token.
    private func runOut(_ id: String, _ audience: Audience, _ document: Document) async throws -> PosternError {
        if usable(.default, in: document) != nil {
            return .misuse("a token of another audience needs the scope offline_access at the sign-in")
        }
        try await change { if $0.session?.id == id { $0.endSession(.ended) } }
        return .signedOut(.ended)
    }
}
