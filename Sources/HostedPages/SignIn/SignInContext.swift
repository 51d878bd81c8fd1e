import Grants
import Persistence
import Texts
import TokenEndpoint

/// One request of a sign-in: who asks, for what, and under which rules.
struct SignInContext: Sendable {
    let exchange: Exchange
    /// The realm with the settings of the App that the pages show.
    let realm: Realm
    let request: AuthorizationRequest
    let cookies: BrowserCookies
    var rules: SignInRules
    /// The origin of the page.
    let origin: String

    init(_ exchange: Exchange, _ request: AuthorizationRequest, _ cookies: BrowserCookies) {
        self.exchange = exchange
        self.request = request
        self.cookies = cookies
        realm = exchange.realm.onPages(for: request.client)
        origin = exchange.realm.origin(ofHost: exchange.host)
        rules = SignInRules(realm, request, host: exchange.host)
    }

    /// The language of the page and of the messages that it causes.
    var language: Language { exchange.language(of: realm, uiLocales: request.uiLocales) }

    /// As factors are redeemed on this page.
    var redemption: RequestContext {
        RequestContext(realm: realm, client: request.client, source: exchange.source, pageOrigin: origin)
    }
}

extension SignInRules {
    /// The rules of a realm's pages for a request.
    init(_ realm: Realm, _ request: AuthorizationRequest, host: String) {
        tries = realm.policy.otpAttempts
        guard !request.provesAddressOnly else {
            methods = [request.provesPhone ? .phoneCode : .emailCode]
            addresses = TypedAddresses(realm, takesMail: !request.provesPhone, takesPhones: request.provesPhone)
            provesAddressOnly = true
            fixedAddress = request.fixedAddress
            return
        }
        methods = realm.hosted.methods
        if let wanted = request.wantedProof {
            // Only a message to the address proves it; the other methods of the realm do not.
            methods = [wanted.kind == .phone ? .phoneCode : .emailCode, .magicLink]
            prefersLink = wanted.prefersLink
            linksPhones = wanted.kind == .phone
            channel = wanted.channel
        }
        let takesLinks = methods.contains(.magicLink) && request.wantedProof == nil
        addresses = TypedAddresses(
            realm, takesMail: methods.contains(.emailCode) || takesLinks, takesPhones: methods.contains(.phoneCode))
        registration = realm.registration
        registrationFields = realm.registrationFields
        hasTerms = realm.brand.termsURI != nil
        if let id = realm.rpID(for: request.client), host == id || host.hasSuffix("." + id) { rpID = id }
    }

    /// Whether passkeys are offered.
    var offersPasskeys: Bool { rpID != nil && methods.contains(.passkey) }
}

extension SignInTransaction {
    /// Where the next message goes.
    /// - Parameter channel: to a phone; `nil`: by that of the message before, or the one that the client prefers.
    func messageAddress(_ context: SignInContext, _ channel: Channel?, _ keyring: Keyring) -> MessageAddress? {
        let last = AuthSessionHandle(handle, realm: context.realm.id, keyring: keyring)?.channel
        return try? context.rules.addresses.read(address, by: channel ?? last ?? context.rules.channel)
    }
}

extension SignInContext {
    /// Whether the realm sends messages to addresses of the kind that the client wants proven.
    var canProveWhatIsWanted: Bool { request.wantedProof == nil || rules.sendsMessages }

    /// A sign-in from the beginning, with the same request in the same browser.
    func begun(from former: SignInTransaction, at now: Double) -> SignInTransaction {
        var transaction = SignInTransaction(
            request: former.request, browser: former.browser, expiresAt: Int(now) + realm.hosted.signInLifetime,
            step: .address)
        transaction.address = request.loginHint ?? former.address
        transaction.addresses = former.addresses
        transaction.session = former.session
        return transaction
    }

    /// The same, which says that no account is made any more.
    func closed(from former: SignInTransaction, at now: Double) -> SignInTransaction {
        var transaction = begun(from: former, at: now)
        transaction.fault = .registrationClosed
        return transaction
    }
}
