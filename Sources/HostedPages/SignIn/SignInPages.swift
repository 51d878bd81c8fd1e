import Grants
import HTTPTypes
import Persistence
import Texts
import TokenEndpoint

/// Renders the steps of a sign-in.
struct SignInPages: Sendable {
    let renderer: PageRenderer
    let assets: AssetRoutes
    let looks: PageLooks
    let parts: PageParts
    /// What a sign-in can be for.
    let purposes: PurposeReaders

    /// The page of a transaction's step.
    /// - Parameter live: who is signed in, for the steps that name the account.
    func page(
        _ transaction: SignInTransaction, _ context: SignInContext, live: BrowserSessionStore.Live?,
        status: HTTPResponse.Status = .ok
    ) async throws -> Answer {
        var transaction = transaction
        let (rules, step) = (context.rules, transaction.step.page)
        var look = looks.look(context.realm, context.exchange, uiLocales: context.purpose.uiLocales).filling([
            "address": transaction.address,
            "count": String(max(0, rules.tries - Int(transaction.wrongCodes))),
            "left": String(transaction.messagesLeft(rules)),
            "seconds": String(pause(before: transaction, context)),
            "host": context.purpose.destination ?? context.exchange.host,
        ])
        if let client = context.purpose.client { look = look.filling(["client": client.displayName]) }
        var values = try await step.values(
            &transaction,
            PageScene(context: context, look: look, live: live, parts: parts, assets: assets))
        let tx = try transaction.text(
            realm: context.exchange.realm, host: context.exchange.host, keyring: parts.keyring)
        values.set("tx", .value(tx))
        values.add(faultOf: transaction, rules)
        values.set("verifies", .flag(rules.provesAddressOnly))
        return renderer.page(
            step.name, step: step.name, error: transaction.fault?.name, title: step.title(transaction, rules), values,
            look: step.filling(look, live), status: status)
    }

    /// Seconds until another message can be asked for, at least one.
    private func pause(before transaction: SignInTransaction, _ context: SignInContext) -> Int {
        let left = Double(transaction.sentAt) + Double(context.realm.policy.resendCooldown) - parts.clock()
        return max(1, min(context.realm.policy.resendCooldown, Int(left.rounded(.up))))
    }

    /// The page of a transaction whose time is over.
    func expired(_ text: String, _ context: SignInContext) -> Answer {
        let look = looks.look(context.realm, context.exchange, uiLocales: context.purpose.uiLocales)
        return renderer.page(
            "expired", step: "expired", title: "expired-title", ["tx": .value(text)], look: look)
    }

    /// A form that posts a response to its redirect URI, by script or by its button.
    func formPost(_ response: AuthorizationResponse, client: String?, _ exchange: Exchange) -> Answer {
        let look = looks.look(exchange.realm, exchange).filling([
            "client": client ?? AuthorizationPurpose.host(of: response.redirectURI)
        ])
        return renderer.page(
            "form-post", step: "form-post", title: "return-title",
            [
                "uri": .value(response.redirectURI), "script": .value(assets.name(of: .formPost)),
                "members": .rows(response.members.map { ["name": .value($0.name), "value": .value($0.value)] }),
            ], look: look)
    }
}
