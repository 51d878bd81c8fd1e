import Grants
import Persistence
import Texts
import TokenEndpoint

/// The browser session that a proof opens, and the code that it may issue: one of each, however often the statement
/// runs.
struct NewBrowserSession {
    let cookie = BrowserCookie()
    let code = AuthorizationCode()
    private let id = UUIDValue.random()
    /// What the statement opens.
    let page: PageSignIn
    private let context: SignInContext
    private let serverKey: [UInt8]

    init(
        _ proof: PageSignIn.Proof, _ transaction: SignInTransaction, _ context: SignInContext, _ parts: PageParts
    ) {
        let former = context.cookies.session ?? BrowserCookie(transaction.ownSession)
        var request = context.purpose.request(issuing: code)
        request?.isProved = former.map(transaction.hasProved) ?? false
        request?.offersPasskey =
            proof != .passkey && context.realm.hosted.offersPasskey && context.rules.offersPasskeys
        let handle = AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)
        page = PageSignIn(
            cookieHash: cookie.hash,
            formerCookieHash: former?.hash,
            host: context.exchange.host, locale: context.language.tag, proves: proof,
            proven: proof == .passkey
                ? nil
                : PageSignIn.Address(
                    transaction.address, byLink: transaction.step == .link || transaction.facts.contains(.byLink)),
            profileHandle: proof != .passkey && context.rules.asksProfile ? handle?.id : nil,
            numberHandle: proof == .phone ? handle?.id : nil, heldHandle: transaction.held?.handle,
            acceptsTerms: transaction.facts.contains(.acceptsTerms), request: request)
        self.context = context
        serverKey = parts.keyring.newest.id
    }

    func session(amr: [String]) -> NewSession {
        .onPage(
            page, id: id, amr: amr, source: context.exchange.source, userAgent: context.exchange.userAgent,
            serverKey: serverKey)
    }
}
