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
    let rules: SignInRules
    /// The origin of the page.
    let origin: String

    init(_ exchange: Exchange, _ request: AuthorizationRequest, _ cookies: BrowserCookies) {
        self.exchange = exchange
        self.request = request
        self.cookies = cookies
        realm = exchange.realm.onPages(for: request.client)
        origin = exchange.realm.pageOrigin(host: exchange.host)
        rules = SignInRules(realm, request.client, host: exchange.host).proving(request.wantedProof)
    }

    /// As factors are redeemed on this page.
    var redemption: RequestContext {
        RequestContext(realm: realm, client: request.client, source: exchange.source, pageOrigin: origin)
    }
}

extension SignInRules {
    /// The rules of a realm's pages for a client.
    init(_ realm: Realm, _ client: Client, host: String) {
        methods = realm.hosted.methods
        registration = realm.registration
        registrationFields = realm.registrationFields
        hasTerms = realm.brand.termsURI != nil
        tries = realm.policy.otpAttempts
        if let id = realm.rpID(for: client), host == id || host.hasSuffix("." + id) { rpID = id }
    }

    /// The rules where an address has to be proven: its messages are the only way, whatever else the realm offers.
    func proving(_ wanted: WantedProof?) -> SignInRules {
        guard let wanted else { return self }
        var rules = self
        rules.methods = [wanted.kind == .email ? .emailCode : .phoneCode, .magicLink]
        rules.prefersLink = wanted.prefersLink
        return rules
    }

    /// Whether passkeys are offered.
    var offersPasskeys: Bool { rpID != nil && methods.contains(.passkey) }
}

extension SignInContext {
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
}
