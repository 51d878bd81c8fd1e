public import Persistence

/// One tenant as the token endpoint sees it: an immutable snapshot of everything an administrator configured.
///
/// A snapshot is replaced as a whole, never changed. The checks before a grant run against it; the statement that
/// consumes a factor checks again in the database (docs/decisions/0000, F1).
///
/// One reference: a request hands its realm from step to step, and each of its thirty parts would be counted each time.
public struct Realm: Sendable {
    private let contents: Shared<RealmContents>

    init(_ contents: RealmContents) {
        self.contents = Shared(contents)
    }

    /// The realm with another content of some parts.
    func changed(_ change: (inout RealmContents) -> Void) -> Realm {
        var contents = contents.value
        change(&contents)
        return Realm(contents)
    }

    /// `realm.id`.
    public var id: UUIDValue { contents.value.id }
    /// Differs after every change of the realm's configuration.
    public var version: Int { contents.value.version }
    /// The name administrators use.
    public var slug: String { contents.value.slug }
    /// The name users read in mails and pages.
    public var displayName: String { contents.value.displayName }
    /// `iss`: the realm's public origin, without a trailing slash.
    public var issuer: String { contents.value.issuer }
    /// The fallback RP-ID, and the host of the domain-bound code line in mails.
    public var primaryDomain: String? { contents.value.primaryDomain }
    /// Whether native grants may start new sign-ins; on an App's host also by the App's switch.
    public var nativeGrantsEnabled: Bool { contents.value.nativeGrantsEnabled }
    /// The sign-in pages; on an App's host with the App's settings.
    public var hosted: Hosted { contents.value.hosted }
    /// Lifetimes and limits of single-use things, in seconds.
    public var policy: Policy { contents.value.policy }
    /// By `client_id`.
    public var clients: [String: Client] { contents.value.clients }
    /// By name.
    public var scopes: [String: Scope] { contents.value.scopes }
    /// By policy and dimension; defaults merged with what the administrator set.
    public var rateLimits: [RateLimit.Policy: [RateLimit.Dimension: RateLimit]] { contents.value.rateLimits }
    /// Which names a new user must give.
    public var registrationFields: RegistrationFields { contents.value.registrationFields }
    /// Newest first; the private half is sealed.
    public var signingKeys: [SealedSigningKey] { contents.value.signingKeys }
    /// By what the realm can send besides mail.
    public var channels: Set<Channel> { contents.value.channels }
    /// Which e-mail addresses it accepts.
    public var addressRules: AddressRules { contents.value.addressRules }
    /// Where messages to phones may go; `nil`: nowhere.
    public var phones: PhonePolicy? { contents.value.phones }
    /// What it asks of proofs of possession.
    public var dpop: DPoPPolicy { contents.value.dpop }
    /// What it lets trusted devices do.
    public var approvals: ApprovalPolicy { contents.value.approvals }
    /// How it proves phone numbers for backends.
    public var possession: PossessionPolicy { contents.value.possession }
    /// What verifies an ``IDTokenHint``: the signing keys, and the retired ones until they are deleted.
    var hintKeys: [HintKey] { contents.value.hintKeys }
    /// Whether another cluster serves it, or soon will: what is read here is not written any more.
    public var hasLeft: Bool { contents.value.hasLeft }
    /// What the codes of test identities are compared under; empty in a realm that never had one.
    var testCodeKeys: [SealedDataKey] { contents.value.testCodeKeys }
    /// All Apps of the realm.
    public var apps: [App] { contents.value.apps }
    /// The look of pages and mails: on an App's host the App's.
    public var brand: Brand { contents.value.brand }
    /// The looks of the Apps, by name.
    var brands: [String: Brand] { contents.value.brands }
    /// The App whose host the request named; `nil` on the realm's own hosts.
    public var app: App? { contents.value.app }
    /// The realm as each App's host shows it, by host.
    var views: [String: Realm] { contents.value.views }
    /// The row keys of all clients that belong to some App.
    var clientsOfApps: Set<UUIDValue> { contents.value.clientsOfApps }

    /// The realm's lifetimes, all in seconds unless named otherwise.
    public struct Policy: Sendable, Equatable {
        /// Default lifetime of an access token.
        public let accessTokenLifetime: Int
        /// Default lifetime of an unused refresh token.
        public let refreshTokenLifetime: Int
        /// How long the immediate predecessor still gets the same successor.
        public let refreshRetryWindow: Int
        /// Absolute lifetime of a session.
        public let sessionLifetime: Int
        /// Lifetime of a mailed code.
        public let otpLifetime: Int
        /// Lifetime of a magic link and of the handle that polls for it.
        public let magicLinkLifetime: Int
        /// Digits of a code, 6 to 8.
        public let otpDigits: Int
        /// Tries per `auth_session` handle.
        public let otpAttempts: Int
        /// Time between two mails to one address.
        public let resendCooldown: Int
        /// Time between begin and redemption of a WebAuthn ceremony.
        public let ceremonyLifetime: Int
    }
}

/// The sign-in pages of a realm or App (`admin.set_hosted`).
public struct Hosted: Sendable, Equatable {
    /// Whether there are pages and an authorization endpoint.
    public let isEnabled: Bool
    /// The ways to sign in that pages offer.
    public let methods: Set<Method>
    /// BCP 47 tag of the language for people whose browser asks for none that there is.
    public let defaultLocale: String
    /// Idle time of a browser session, in seconds; 0: no single sign-on and no session cookie.
    public let singleSignOnIdle: Int
    /// How long the steps of one sign-in may take, in seconds.
    public let signInLifetime: Int
    /// How long an authorization code may be redeemed, in seconds.
    public let codeLifetime: Int
    /// Whether a sign-in without a passkey offers to create one.
    public let offersPasskey: Bool

    /// The languages of the pages (BCP 47), the fallback first.
    public static let locales = ["en", "de", "fr", "es", "it", "nl", "pl", "pt-BR", "tr", "ja", "ar"]

    /// A way to sign in on a page.
    public enum Method: String, Sendable {
        case passkey
        case emailCode = "email-code"
        case magicLink = "magic-link"
        case phoneCode = "phone-code"
    }

    /// No pages.
    static let off = Hosted(
        isEnabled: false, methods: [], defaultLocale: "en", singleSignOnIdle: 0, signInLifetime: 1800, codeLifetime: 60,
        offersPasskey: false)
}

/// Which names a request for a code may or must carry (`admin.set_registration_fields`).
public struct RegistrationFields: Sendable, Equatable {
    /// What the administrator decided for one field.
    public enum Rule: String, Sendable {
        case off = "Off"
        case optional = "Optional"
        case required = "Required"
    }

    /// `FirstName`.
    public let firstName: Rule
    /// `LastName`.
    public let lastName: Rule

    package init(firstName: Rule, lastName: Rule) {
        self.firstName = firstName
        self.lastName = lastName
    }
}

/// A scope the realm knows (`admin.put_scope`).
public struct Scope: Sendable, Equatable {
    /// The scope's name, a `scope-token` of RFC 6749 §3.3.
    public let name: String
    /// The audiences a token with this scope is for (RFC 8707).
    public let resources: [String]
    /// Whether discovery lists it.
    public let inDiscovery: Bool
    /// A disabled scope is answered like an unknown one.
    public let enabled: Bool
    /// What people read when they are asked to allow it.
    public internal(set) var description: String?
}
