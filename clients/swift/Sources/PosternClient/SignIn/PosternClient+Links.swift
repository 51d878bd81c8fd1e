import Foundation

extension PosternClient {
    /// Asks for a link by mail or SMS. Show ``PendingSignIn/matchNumber`` and ``wait(for:secondFactor:)``: the person types
    /// the number where the link is opened. A link that is opened in this app is for ``open(_:secondFactor:)``.
    public func requestLink(to address: Address, names: Names? = nil) async throws -> PendingSignIn {
        try await signIn(ask(.link, address.members.merging(names?.members ?? [:]) { $1 }))
    }

    /// Asks the trusted devices of a person for an approval (OpenID Connect CIBA Core). Show ``PendingSignIn/matchNumber``.
    /// - Parameter hint: an e-mail address, a phone number in E.164 form, or the id of a user.
    public func requestApproval(of hint: String) async throws -> PendingSignIn {
        let answer = try await post("/connect/bc-authorize", form: [scopeField, ("login_hint", hint)])
        guard let handle = answer.json?["auth_req_id"]?.string else { throw PosternError.unavailable(retryAfter: nil) }
        return try await keep(.approval, handle, answer, ["matchNumber": answer.json?["match_number"]])
    }

    /// Begins a sign-in that ends on another device, for apps without a keyboard (RFC 8628).
    public func requestDeviceSignIn() async throws -> PendingSignIn {
        let answer = try await post("/connect/device_authorization", form: [scopeField])
        guard let handle = answer.json?["device_code"]?.string, let code = answer.json?["user_code"],
            let page = answer.json?["verification_uri"]
        else { throw PosternError.unavailable(retryAfter: nil) }
        return try await keep(
            .device, handle, answer,
            ["userCode": code, "page": page, "completePage": answer.json?["verification_uri_complete"]])
    }

    /// Asks for another message with a link. Sooner than ``PendingSignIn/resendAt`` none is sent, and the same request comes
    /// back.
    public func resend(_ pending: PendingSignIn) async throws -> PendingSignIn {
        guard pending.kind == .link else { throw PosternError.misuse("only a link can be sent again: begin anew") }
        guard let former = try await pendingRequest(pending.id), former.knownKind == .link else {
            throw PosternError.misuse("the request is over: ask for another link")
        }
        return try await signIn(askAgain(.link, former))
    }

    /// Signs in with a link that was opened in this app, if a request of this app asked for it.
    /// - Returns: `nil` for a URL that is no link of this server.
    /// - Throws: ``PosternError/foreignLink`` when no request of this app asked for it: it would sign the person in to
    ///   somebody else's account. ``PosternError/secondFactorNeeded``: call again with it.
    public func open(_ url: URL, secondFactor: SecondFactor? = nil) async throws -> User? {
        guard let link = try await magicLink(url) else { return nil }
        let asked = try await document().pending.filter { $0.knownKind == .link }.suffix(3).reversed()
        for pending in asked {
            opening.insert(pending.id)
            defer { opening.remove(pending.id) }
            let form = [
                ("grant_type", GrantType.link), ("user_id", link.userID), ("magic_token", link.token),
                ("auth_session", pending.handle), scopeField,
            ]
            do {
                // Once only: a link that comes again is refused.
                let answer = try await token(form + [secondFactor?.field].compactMap { $0 }, as: .code)
                let user = try await establish(answer, finishing: pending.id)
                end(poll: pending.id, .success(user))
                return user
            } catch PosternError.wrongCode {
                continue
            }
        }
        throw PosternError.foreignLink
    }

    private func magicLink(_ url: URL) async throws -> MagicLink? {
        guard let own = Origin(configuration.origin), let site = Origin(url) else { return nil }
        if let link = MagicLink(url, of: [own]) { return link }
        // Links have the host of the realm, this app may know the one of an App. Only what looks like one is worth asking.
        guard MagicLink(url, of: [site]) != nil else { return nil }
        return MagicLink(url, of: [URL(string: try await issuer()).flatMap(Origin.init)].compactMap { $0 })
    }

    private func keep(
        _ kind: PendingRequest.Kind, _ handle: String, _ answer: Answer, _ members: [String: JSONValue?]
    ) async throws -> PendingSignIn {
        guard let life = answer.json?["expires_in"]?.seconds else { throw PosternError.unavailable(retryAfter: nil) }
        var made = PendingRequest(
            kind, handle: handle, lifetime: life, members.compactMapValues { $0 }, at: surroundings.now())
        made.members["interval"] = answer.json?["interval"]
        let pending = made
        try await change { $0.keep(pending) }
        return try signIn(pending)
    }

    private func signIn(_ pending: PendingRequest) throws -> PendingSignIn {
        guard let request = pending.signIn else { throw PosternError.unavailable(retryAfter: nil) }
        return request
    }
}
