import Foundation

extension PosternClient {
    /// Signs out.
    ///
    /// The session ends here first, also without a network; then it is revoked at the server, if need be with the next
    /// request. ``SignOutScope/everywhere`` needs the server: when it cannot be reached, the user stays signed in.
    public func signOut(_ scope: SignOutScope = .thisSession) async throws {
        if scope == .everywhere {
            try await ending { _ = try await accountCall("DELETE", Path.sessions + "?current=true") }
            return
        }
        try await change { $0.endSession(.byUser, revoking: $0.session != nil) }
        revokeInBackground()
        if scope == .forgettingThisDevice { try await forgetDevice() }
        await revoking?.value
    }

    /// Ends the present session here when a call has ended it at the server. Who signed in meanwhile stays.
    /// - Parameter hint: whether the ID token is worth nothing from then on.
    func ending(withHint hint: Bool = false, _ call: () async throws -> Void) async throws {
        let id = try await document().session?.id
        try await call()
        try await change { document in
            guard document.session?.id == id else { return }
            document.endSession(.byUser)
            if hint { document.hint = nil }
        }
    }

    /// Removes the trusted device at the server if it can be reached, then key and hint here.
    private func forgetDevice() async throws {
        _ = try? await device.remove()
        try? await (store as? any SettingAsideStore)?.forgetAside()
        try await change { document in
            // Somebody may have signed in meanwhile.
            guard document.session == nil else { return }
            document.key = nil
            document.hint = nil
            document.pending = []
        }
        openKey = nil
    }

    /// Tells the server about sessions that ended here. One attempt; what fails is tried with the next request.
    func revokeInBackground() {
        guard mustRevoke, revoking == nil else { return }
        revoking = Task {
            await revokeAll()
            revoking = nil
        }
    }

    private func revokeAll() async {
        guard let tokens = try? await document().toRevoke else { return }
        for token in tokens {
            let form = [("token", token), ("client_id", configuration.clientID)]
            // A page of something in between is no answer of the server.
            guard let answer = try? await perform(Call(path: Path.revoke, body: .form(form))),
                answer.status == 200 || answer.error != nil && answer.status != 429
            else { return }
            _ = try? await change { $0.toRevoke.removeAll { $0 == token } }
        }
    }
}
