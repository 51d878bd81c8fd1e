import Grants
import Persistence
import Texts
import TokenEndpoint

/// One request of a sign-in: what it is for, and under which rules.
struct SignInContext: Sendable {
    let exchange: Exchange
    let purpose: any SignInPurpose
    let cookies: BrowserCookies
    var rules: SignInRules
    /// The origin of the page.
    let origin: String

    init(_ exchange: Exchange, _ purpose: any SignInPurpose, _ cookies: BrowserCookies) {
        self.exchange = exchange
        self.purpose = purpose
        self.cookies = cookies
        origin = exchange.realm.origin(ofHost: exchange.host)
        rules = purpose.rules(host: exchange.host)
    }

    /// The realm with the settings of the App that the pages show.
    var realm: Realm { purpose.realm }

    /// The language of the page and of the messages that it causes.
    var language: Language { exchange.language(of: realm, uiLocales: purpose.uiLocales) }

    /// The client whose permission the statements of a proof check.
    /// - Throws: `temporarily_unavailable` for a purpose of the host itself, which no statement knows yet.
    var client: Client {
        get throws(TokenError) {
            guard let client = purpose.client else { throw .unavailable("a proof for no client") }
            return client
        }
    }

    /// As factors are redeemed on this page. - Throws: as ``client``.
    var redemption: RequestContext {
        get throws(TokenError) {
            RequestContext(realm: realm, client: try client, source: exchange.source, pageOrigin: origin)
        }
    }
}

extension SignInRules {
    /// The rules of a realm's pages, without passkeys.
    init(_ realm: Realm) {
        tries = realm.policy.otpAttempts
        methods = realm.hosted.methods
        registration = realm.registration
        registrationFields = realm.registrationFields
        hasTerms = realm.brand.termsURI != nil
        addresses = TypedAddresses(
            realm, takesMail: methods.contains(.emailCode) || methods.contains(.magicLink),
            takesPhones: methods.contains(.phoneCode))
    }

    /// The rules for an authorization request. Passkeys are those of the client's RP-ID.
    init(_ realm: Realm, _ request: AuthorizationRequest, host: String) {
        guard !request.provesAddressOnly else {
            self.init()
            tries = realm.policy.otpAttempts
            methods = [request.provesPhone ? .phoneCode : .emailCode]
            addresses = TypedAddresses(realm, takesMail: !request.provesPhone, takesPhones: request.provesPhone)
            provesAddressOnly = true
            fixedAddress = request.fixedAddress
            return
        }
        self.init(realm)
        if let wanted = request.wantedProof {
            // Only a message to the address proves it; the other methods of the realm do not.
            methods = [wanted.kind == .phone ? .phoneCode : .emailCode, .magicLink]
            addresses = TypedAddresses(
                realm, takesMail: wanted.kind == .email, takesPhones: wanted.kind == .phone)
            wantsAddress = true
            prefersLink = wanted.prefersLink
            linksPhones = wanted.kind == .phone
            channel = wanted.channel
        }
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
    /// A sign-in from the beginning, for the same purpose in the same browser.
    func begun(from former: SignInTransaction, at now: Double) -> SignInTransaction {
        var transaction = SignInTransaction(
            purpose: former.purpose, browser: former.browser, expiresAt: Int(now) + realm.hosted.signInLifetime,
            step: .address)
        transaction.address = purpose.loginHint ?? former.address
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
