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
            "host": Self.host(of: context.request.redirectURI),
        ])
        var values = try await values(&transaction, context, look, live)
        values["tx"] = try transaction.text(
            realm: context.exchange.realm, host: context.exchange.host, keyring: parts.keyring)
        if let fault = transaction.fault { values["fault"] = look.texts["fault-\(fault.name)"] }
        let step = transaction.step
        values["verifies"] = context.rules.provesAddressOnly
        let texts = step == .consent ? look.filling(["address": live?.address ?? ""]) : look
        return renderer.page(
            step.name, step: step.name, error: transaction.fault?.name,
            title: texts.texts[Self.title(of: transaction, context)],
            values, look: texts, status: status)
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
        case .link where transaction.address.isPhone: "link-title-phone"
        case let step: titles[step] ?? ""
        }
    }

    private func values(
        _ transaction: inout SignInTransaction, _ context: SignInContext, _ look: PageLook,
        _ live: BrowserSessionStore.Live?
    ) async throws -> [String: Any] {
        let rules = context.rules
        var values: [String: Any] = [:]
        switch transaction.step {
        case .address:
            values["address"] = transaction.address
            values["sends"] = rules.sendsMessages
            addKind(to: &values, rules, look)
            values["holds"] = transaction.held != nil
            if transaction.held != nil ? rules.replacesAccount : rules.offersRegistration {
                values["registers"] = look.texts[transaction.held != nil ? "again-register" : "address-register"]
            }
            values["fixed"] = rules.fixedAddress != nil
            if rules.offersPasskeys, let rpID = rules.rpID {
                let begun = try parts.passkeys.beginOnPage(
                    realm: context.realm, client: context.request.client, rpID: rpID)
                transaction.ceremony = begun.ceremonyID
                values["passkey"] = true
                values["options"] = String(decoding: begun.options, as: UTF8.self)
                values["script"] = assets.name(of: .passkey)
            }
        case .register:
            values["address"] = transaction.address
            addKind(to: &values, rules, look)
            addNames(to: &values, rules, context, asksTerms: true)
        case .code:
            values["tries"] = transaction.wrongCodes > 0 && Int(transaction.wrongCodes) < rules.tries
            values["resends"] = Int(transaction.sends) < rules.sends(to: transaction.address)
            values["links"] = transaction.offersLink(rules)
            addChannels(to: &values, transaction, context, look)
            values["fixed"] = rules.fixedAddress != nil
        case .link: add(link: transaction, to: &values, context, look)
        case .secondFactor: break
        case .profile:
            addNames(to: &values, rules, context, asksTerms: !transaction.facts.contains(.acceptsTerms))
        case .offerPasskey:
            values["script"] = assets.name(of: .passkey)
            if let live, let rpID = rules.rpID,
                let begun = try await parts.passkeys.beginEnrolment(
                    realm: context.realm, rpID: rpID,
                    owner: Passkeys.Owner(
                        client: context.request.client, session: live.id, user: live.user,
                        pageOrigin: context.origin))
            {
                transaction.ceremony = begun.ceremonyID
                values["options"] = String(decoding: begun.options, as: UTF8.self)
            }
        case .consent:
            values["scopes"] = context.request.scope.map { scope in
                let known = look.texts.filling(["scope": scope])
                let text = known["scope-\(scope)"]
                return [
                    "text": text == "scope-\(scope)"
                        ? Self.description(of: scope, context) ?? known["scope-other"] : text
                ]
            }
        case .continueAs:
            values["account"] = rules.provesAddressOnly ? transaction.address : live?.address ?? ""
        }
        return values
    }

    /// What kind of address the field takes.
    private func addKind(to values: inout [String: Any], _ rules: SignInRules, _ look: PageLook) {
        let addresses = rules.addresses
        switch (addresses.takesMail, addresses.takesPhones) {
        case (true, false): (values["kind"], values["label"]) = ("email", look.texts["address-label"])
        case (false, _): (values["kind"], values["label"]) = ("tel", look.texts["address-label-phone"])
        case (true, true): (values["kind"], values["label"]) = ("text", look.texts["address-label-any"])
        }
    }

    /// The other ways by which a code can reach a phone.
    private func addChannels(
        to values: inout [String: Any], _ transaction: SignInTransaction, _ context: SignInContext, _ look: PageLook
    ) {
        guard transaction.address.isPhone else { return }
        values["isPhone"] = true
        guard Int(transaction.sends) < context.rules.sends(to: transaction.address) else { return }
        let last = AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)?.channel
        values["channels"] = context.rules.addresses.channels.filter { $0 != last }.map {
            ["action": $0.rawValue, "text": look.texts["code-\($0.rawValue)"] ?? ""]
        }
    }

    /// What the administrator says a scope is for.
    private static func description(of scope: String, _ context: SignInContext) -> String? {
        context.realm.scopes[scope]?.description
    }

    private func addNames(
        to values: inout [String: Any], _ rules: SignInRules, _ context: SignInContext, asksTerms: Bool
    ) {
        let fields = rules.registrationFields
        if fields.firstName != .off { values["firstName"] = ["isOptional": fields.firstName == .optional] }
        if fields.lastName != .off { values["lastName"] = ["isOptional": fields.lastName == .optional] }
        if asksTerms, let terms = context.realm.brand.termsURI { values["terms"] = ["uri": terms] }
    }

    private func add(
        link transaction: SignInTransaction, to values: inout [String: Any], _ context: SignInContext, _ look: PageLook
    ) {
        let handle = AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)
        let polling = handle.flatMap { parts.mailedLink.polling(ofHandle: $0.id) }
        values["number"] = polling?.matchNumber ?? ""
        values["interval"] = polling?.interval ?? 5
        values["codes"] = context.rules.sendsCodes(to: transaction.address)
        values["fixed"] = context.rules.fixedAddress != nil
        if transaction.link != .denied, transaction.link != .expired { values["script"] = assets.name(of: .wait) }
        let client = context.request.client
        values["submits"] =
            context.request.redirectURI.hasPrefix("https:") && client.iosApps.isEmpty && client.androidApps.isEmpty
        switch transaction.link {
        case .pending: values["state"] = look.texts["link-pending"]
        case .denied: values["state"] = look.texts["link-denied"]
        case .expired: values["state"] = look.texts["link-expired"]
        case .confirmed, nil: break
        }
    }

    /// The page of a transaction whose time is over.
    func expired(_ text: String, _ context: SignInContext) -> Answer {
        let look = looks.look(context.realm, context.exchange, uiLocales: context.request.uiLocales)
        return renderer.page(
            "expired", step: "expired", title: look.texts["expired-title"], ["tx": text], look: look)
    }

    /// A form that posts a response to its redirect URI, by script or by its button.
    func formPost(_ response: AuthorizationResponse, client: String?, _ exchange: Exchange) -> Answer {
        let look = looks.look(exchange.realm, exchange).filling([
            "client": client ?? Self.host(of: response.redirectURI)
        ])
        return renderer.page(
            "form-post", step: "form-post", title: look.texts["return-title"],
            [
                "uri": response.redirectURI, "script": assets.name(of: .formPost),
                "members": response.members.map { ["name": $0.name, "value": $0.value] },
            ], look: look)
    }

    /// Host or scheme of a redirect URI, as people know it.
    private static func host(of uri: String) -> String {
        guard uri.hasPrefix("http") else { return String(uri.prefix { $0 != ":" }) }
        return String(
            (uri.firstRange(of: "://").map { uri[$0.upperBound...] } ?? uri[...]).prefix { $0 != "/" && $0 != "?" })
    }
}
