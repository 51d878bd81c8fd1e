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

    /// The page of a transaction's step.
    /// - Parameter live: who is signed in, for the steps that name the account.
    func page(
        _ transaction: SignInTransaction, _ context: SignInContext, live: BrowserSessionStore.Live?,
        status: HTTPResponse.Status = .ok
    ) async throws -> Answer {
        var transaction = transaction
        let look = looks.look(context.realm, context.exchange, uiLocales: context.request.uiLocales).filling([
            "client": context.request.client.displayName, "address": transaction.address,
            "count": String(max(0, context.rules.tries - Int(transaction.wrongCodes))),
            "left": String(transaction.messagesLeft(context.rules)),
            "seconds": String(pause(before: transaction, context)),
            "host": Self.host(of: context.request.redirectURI),
        ])
        var values = try await values(&transaction, context, look, live)
        let tx = try transaction.text(
            realm: context.exchange.realm, host: context.exchange.host, keyring: parts.keyring)
        values.set("tx", .value(tx))
        addFault(to: &values, transaction, context.rules)
        let step = transaction.step
        values.set("verifies", .flag(context.rules.provesAddressOnly))
        let filled = step == .consent ? look.filling(["address": live?.address ?? ""]) : look
        return renderer.page(
            step.name, step: step.name, error: transaction.fault?.name,
            title: Self.title(of: transaction, context), values, look: filled, status: status)
    }

    private static let titles: [SignInStep: String] = [
        .address: "address-title", .register: "register-title", .code: "code-title", .link: "link-title",
        .secondFactor: "second-title", .profile: "profile-title", .offerPasskey: "offer-title",
        .consent: "consent-title", .continueAs: "continue-title",
    ]

    private static func title(of transaction: SignInTransaction, _ context: SignInContext) -> String {
        switch transaction.step {
        case .address where transaction.held != nil: "second-title"
        case .address where context.rules.provesAddressOnly || transaction.facts.contains(.stepsUp): "verify-title"
        case .link where transaction.link == .denied: "link-denied-title"
        case .link where transaction.link == .expired: "link-expired-title"
        case .link where transaction.address.isPhone: "link-title-phone"
        case let step: titles[step] ?? ""
        }
    }

    private func values(
        _ transaction: inout SignInTransaction, _ context: SignInContext, _ look: PageLook,
        _ live: BrowserSessionStore.Live?
    ) async throws -> PageValues {
        let rules = context.rules
        var values = PageValues()
        switch transaction.step {
        case .address:
            values.set("address", .value(transaction.address))
            values.set("sends", .flag(rules.sendsMessages))
            addKind(of: rules.addresses, to: &values)
            values.set("holds", .flag(transaction.held != nil))
            transaction.facts.remove(.offersRegistration)
            if transaction.held != nil ? rules.replacesAccount : rules.offersRegistration {
                transaction.facts.insert(.offersRegistration)
                values.set("registers", .text(transaction.held != nil ? "again-register" : "address-register"))
            }
            values.set("fixed", .flag(rules.fixedAddress != nil))
            if rules.offersPasskeys, let rpID = rules.rpID {
                let begun = parts.passkeys.beginOnPage(
                    realm: context.realm, client: context.request.client, rpID: rpID)
                transaction.ceremony = begun.ceremony.encoded
                values.set("passkey", .flag(true))
                values.set("options", .value(String(decoding: begun.options, as: UTF8.self)))
                values.set("script", .value(assets.name(of: .passkey)))
            }
        case .register:
            values.set("address", .value(transaction.address))
            addKind(of: rules.registeredAddresses, to: &values)
            addNames(to: &values, transaction, context, asksTerms: true)
        case .code:
            values.set("tries", .flag(transaction.wrongCodes > 0))
            values.set("dead", .flag(transaction.hasNoTries(rules)))
            let mayResend = transaction.messagesLeft(rules) > 0
            values.set("resends", .flag(mayResend))
            addReport(to: &values, transaction, rules)
            values.set("links", .flag(mayResend && transaction.offersLink(rules)))
            addChannels(to: &values, transaction, context)
            values.set("fixed", .flag(rules.fixedAddress != nil))
        case .link: add(link: transaction, to: &values, context)
        case .secondFactor: break
        case .profile:
            addNames(to: &values, transaction, context, asksTerms: !transaction.facts.contains(.acceptsTerms))
        case .offerPasskey:
            values.set("script", .value(assets.name(of: .passkey)))
            if let live, let rpID = rules.rpID,
                let begun = try await parts.passkeys.enrolment(
                    realm: context.realm, rpID: rpID,
                    owner: Passkeys.Owner(
                        client: context.request.client, session: live.id, user: live.user,
                        pageOrigin: context.origin))
            {
                transaction.ceremony = begun.ceremony.encoded
                values.set("options", .value(String(decoding: begun.options, as: UTF8.self)))
            }
        case .consent:
            let texts = look.texts
            let rows = context.request.scope.map { scope -> PageValues in
                let known = texts.filling(["scope": scope])
                let text = known["scope-\(scope)"]
                let isKnown = text != "scope-\(scope)"
                return ["text": .value(isKnown ? text : Self.description(of: scope, context) ?? known["scope-other"])]
            }
            values.set("scopes", .rows(rows))
        case .continueAs:
            values.set(account: rules.provesAddressOnly ? transaction.address : live?.address ?? "")
        }
        return values
    }

    /// What kind of address the field takes.
    private func addKind(of addresses: TypedAddresses, to values: inout PageValues) {
        // A field of type `email` refuses what copying brings around an address; the keyboard comes of `inputmode`.
        let (kind, keyboard, label) =
            switch (addresses.takesMail, addresses.takesPhones) {
            case (true, false): ("text", "email", "address-label")
            case (false, _): ("tel", "tel", "address-label-phone")
            case (true, true): ("text", "text", "address-label-any")
            }
        values.set("kind", .value(kind))
        values.set("keyboard", .value(keyboard))
        values.set("label", .text(label))
    }

    /// The other ways by which a code can reach a phone.
    private func addChannels(
        to values: inout PageValues, _ transaction: SignInTransaction, _ context: SignInContext
    ) {
        guard transaction.address.isPhone else { return }
        values.set("isPhone", .flag(true))
        guard transaction.messagesLeft(context.rules) > 0 else { return }
        let last = AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)?.channel
        let others = context.rules.addresses.channels.filter { $0 != last }
        values.set(
            "channels",
            .rows(others.map { ["action": .value($0.rawValue), "text": .text("code-\($0.rawValue)")] }))
    }

    /// What the administrator says a scope is for.
    private static func description(of scope: String, _ context: SignInContext) -> String? {
        context.realm.scopes[scope]?.description
    }

    private func add(
        link transaction: SignInTransaction, to values: inout PageValues, _ context: SignInContext
    ) {
        let handle = AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)
        let polling = handle.flatMap { parts.sentLink.polling(ofHandle: $0.id) }
        values.set("number", .value(polling?.matchNumber ?? ""))
        values.set("interval", .value(String(polling?.interval ?? 5)))
        let mayResend = transaction.messagesLeft(context.rules) > 0
        values.set("codes", .flag(mayResend && context.rules.sendsCodes(to: transaction.address)))
        values.set("fixed", .flag(context.rules.fixedAddress != nil))
        values.set("resends", .flag(mayResend))
        addReport(to: &values, transaction, context.rules)
        let isOver = transaction.link == .denied || transaction.link == .expired
        values.set("over", .flag(isOver))
        if !isOver { values.set("script", .value(assets.name(of: .wait))) }
        let client = context.request.client
        values.set(
            "submits",
            .flag(
                context.request.redirectURI.hasPrefix("https:") && client.iosApps.isEmpty
                    && client.androidApps.isEmpty))
        switch transaction.link {
        case .pending: values.set("state", .text("link-pending"))
        case .denied: values.set("state", .text("link-denied"))
        case .expired: values.set("state", .text("link-expired"))
        case .confirmed, nil: break
        }
    }

    /// The page of a transaction whose time is over.
    func expired(_ text: String, _ context: SignInContext) -> Answer {
        let look = looks.look(context.realm, context.exchange, uiLocales: context.request.uiLocales)
        return renderer.page(
            "expired", step: "expired", title: "expired-title", ["tx": .value(text)], look: look)
    }

    /// A form that posts a response to its redirect URI, by script or by its button.
    func formPost(_ response: AuthorizationResponse, client: String?, _ exchange: Exchange) -> Answer {
        let look = looks.look(exchange.realm, exchange).filling([
            "client": client ?? Self.host(of: response.redirectURI)
        ])
        return renderer.page(
            "form-post", step: "form-post", title: "return-title",
            [
                "uri": .value(response.redirectURI), "script": .value(assets.name(of: .formPost)),
                "members": .rows(response.members.map { ["name": .value($0.name), "value": .value($0.value)] }),
            ], look: look)
    }

    /// Host or scheme of a redirect URI, as people know it.
    private static func host(of uri: String) -> String {
        let utf8 = uri.utf8
        let scheme = utf8.prefix { $0 != UInt8(ascii: ":") }
        guard uri.hasPrefix("http"), utf8[scheme.endIndex...].starts(with: "://".utf8) else {
            return String(Substring(scheme))
        }
        let host = utf8[scheme.endIndex...].dropFirst(3).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return String(Substring(host))
    }
}
