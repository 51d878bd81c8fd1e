import Grants
import Persistence
import Texts
import TokenEndpoint

extension SignInFlow {
    /// Asks for a code or a link for the address of a transaction.
    func send(
        _ factor: any SentFactor, by channel: Channel?, resends: Bool, _ first: PersonName?, _ last: PersonName?,
        to step: SignInStep, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInTransaction {
        try await message(by: channel, to: step, transaction, context) { address in
            let receipt = try await parts.requests.record(
                SignInRequests.Form(
                    address: address, firstName: first, lastName: last, clientID: context.purpose.client?.clientID,
                    authSession: resends ? transaction.handle : nil, idTokenHint: nil,
                    locale: context.language.tag, pageOrigin: context.origin, pageBrowser: transaction.browser,
                    device: try await device(transaction, context)),
                for: factor, realm: context.realm, source: context.exchange.source)
            return SentMessage(handle: receipt.authSession, left: receipt.sendsLeft)
        }
    }

    /// The device that a request comes from, as its account may know it: the browser session that the cookie names,
    /// live or ended, or the one that `id_token_hint` was made for. The hint counts where the two name different users,
    /// since the client expects that one.
    private func device(
        _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> (user: UUIDValue, session: UUIDValue)? {
        let hinted = context.purpose.hintedDevice
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession) else { return hinted }
        try parts.countLookUp(context.exchange)
        guard
            let known = try await parts.browserSessions.device(
                realm: context.realm.id, cookieHash: cookie.hash, host: context.exchange.host),
            hinted == nil || hinted?.user == known.user
        else { return hinted }
        return known
    }

    /// The page's state goes with the link, so that the browser that asked can go on where the link is opened.
    func keep(_ transaction: SignInTransaction, _ context: SignInContext) async throws {
        guard let handle = opened(transaction.handle, context) else { return }
        try await parts.pageStates.keep(
            realm: context.realm.id, handle: handle.id, browser: transaction.browser,
            state: Array(
                try transaction.text(realm: context.realm, host: context.exchange.host, keyring: parts.keyring).utf8))
    }
}
