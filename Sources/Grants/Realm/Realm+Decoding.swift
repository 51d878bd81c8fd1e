import Encoding
import Foundation
import Persistence

extension Realm {
    /// Decodes what `postern.realm_config` answers.
    /// - Throws: a `DecodingError` when the schema and this binary do not belong together.
    public init(json: String) throws {
        let contents = RealmContents(try JSONDecoder.snakeCase.decode(RealmRecord.self, from: Data(json.utf8)))
        let realm = Realm(contents)
        self = realm.changed { contents in
            for app in realm.apps {
                if let host = app.host { contents.views[host] = realm.view(of: app) }
            }
        }
    }
}

extension RealmContents {
    fileprivate init(_ record: RealmRecord) {
        id = record.id
        version = record.configVersion
        hasLeft = record.left ?? false
        slug = record.slug
        displayName = record.displayName
        issuer = record.publicOrigin
        primaryDomain = record.primaryDomain
        nativeGrantsEnabled = record.nativeGrantsEnabled
        hosted = Hosted(record.hosted)
        policy = Realm.Policy(
            accessTokenLifetime: record.accessTokenLifetime, refreshTokenLifetime: record.refreshTokenLifetime,
            refreshRetryWindow: record.refreshRetryWindow, sessionLifetime: record.sessionLifetime,
            otpLifetime: record.otpLifetime, magicLinkLifetime: record.magicLinkLifetime,
            otpDigits: record.otpDigits, otpAttempts: record.otpAttempts, resendCooldown: record.resendCooldown,
            ceremonyLifetime: record.ceremonyLifetime)
        clients = Dictionary(record.clients.map { ($0.clientId, Client($0)) }) { first, _ in first }
        scopes = Dictionary(record.scopes.map { ($0.name, Scope($0)) }) { first, _ in first }
        var limits: [RateLimit.Policy: [RateLimit.Dimension: RateLimit]] = [:]
        for limit in record.rateLimits {
            // A dimension of a newer schema is not this binary's to apply.
            guard let dimension = RateLimit.Dimension(rawValue: limit.dimension) else { continue }
            limits[RateLimit.Policy(rawValue: limit.policy), default: [:]][dimension] = RateLimit(
                permits: limit.permits, per: limit.per, burst: limit.burst, enforced: limit.mode == "enforce")
        }
        rateLimits = limits
        registrationFields = RegistrationFields(record.registrationFirstname, record.registrationLastname)
        signingKeys = record.signingKeys.map(SealedSigningKey.init)
        phones = record.phones.map(PhonePolicy.init)
        // A channel of a newer schema is not this binary's to use.
        channels = Set(record.channels.compactMap(Channel.init))
        dpop = DPoPPolicy(record.dpop)
        approvals = record.approvals.map(ApprovalPolicy.init) ?? ApprovalPolicy()
        possession = record.possession.map(PossessionPolicy.init) ?? PossessionPolicy()
        addressRules = AddressRules(
            record.addressRules.map { .init(app: $0.app, domain: $0.domain, allows: $0.action == "allow") })
        hintKeys = record.hintKeys.compactMap { HintKey(kid: $0.kid, alg: $0.alg, publicJWK: $0.publicJwk) }
        testCodeKeys = record.testCodeKeys.map {
            SealedDataKey(id: $0.id, purpose: .testCode, sealed: Hex.decode($0.sealed) ?? [])
        }
        apps = record.apps.map { App($0, realm: record.hosted) }
        brand = Brand(record.brands ?? [], record.texts ?? [], app: nil)
        brands = Dictionary(
            uniqueKeysWithValues: apps.map { ($0.slug, Brand(record.brands ?? [], record.texts ?? [], app: $0.slug)) })
        clientsOfApps = apps.reduce(into: []) { $0.formUnion($1.clients) }
    }
}

extension App {
    fileprivate init(_ record: AppRecord, realm: HostedRecord) {
        slug = record.slug
        displayName = record.displayName
        host = record.subdomain
        // An unknown posture is treated as `off`.
        registration = .init(rawValue: record.registration) ?? .off
        nativeGrantsEnabled = record.nativeGrantsEnabled
        hosted = Hosted(
            HostedRecord(
                enabled: realm.enabled && record.hostedEnabled, methods: record.hostedMethods,
                defaultLocale: record.defaultLocale, ssoIdle: realm.ssoIdle, signInLifetime: realm.signInLifetime,
                codeLifetime: realm.codeLifetime, offerPasskey: record.offerPasskey))
        registrationFields = RegistrationFields(record.registrationFirstname, record.registrationLastname)
        clients = Set(record.clients)
    }
}

extension Hosted {
    fileprivate init(_ record: HostedRecord) {
        isEnabled = record.enabled
        // A method of a newer schema is not this binary's to offer.
        methods = Set(record.methods.compactMap(Method.init))
        defaultLocale = record.defaultLocale
        singleSignOnIdle = record.ssoIdle
        signInLifetime = record.signInLifetime
        codeLifetime = record.codeLifetime
        offersPasskey = record.offerPasskey
    }
}

extension RegistrationFields {
    fileprivate init(_ firstName: String, _ lastName: String) {
        self.init(firstName: .init(rawValue: firstName) ?? .off, lastName: .init(rawValue: lastName) ?? .off)
    }
}

extension SealedSigningKey {
    /// Decodes what `postern.add_signing_key` answers; a key that cannot be opened later when it does not decode.
    init(_ json: String) throws {
        self.init(try JSONDecoder.snakeCase.decode(SigningKeyRecord.self, from: Data(json.utf8)))
    }

    fileprivate init(_ record: SigningKeyRecord) {
        kid = record.kid
        alg = record.alg
        forRealm = record.forRealm
        publicJWK = record.publicJwk.text
        sealedPrivateKey = Hex.decode(record.sealedPrivate) ?? []
        dataKey = DataKey.id(in: sealedPrivateKey).map {
            SealedDataKey(
                id: $0, purpose: .signingKey, sealed: record.sealedDataKey.flatMap(Hex.decode) ?? [])
        }
        activatesAt = record.activatesAt
        retiresAt = record.retiresAt
    }
}

extension Scope {
    fileprivate init(_ record: ScopeRecord) {
        name = record.name
        resources = record.resources
        inDiscovery = record.inDiscovery
        enabled = record.enabled
        description = record.description
    }
}

private struct RealmRecord: Decodable {
    let id: UUIDValue
    let configVersion: Int
    let left: Bool?
    let slug: String
    let displayName: String
    let publicOrigin: String
    let primaryDomain: String?
    let nativeGrantsEnabled: Bool
    let hosted: HostedRecord
    let accessTokenLifetime: Int
    let refreshTokenLifetime: Int
    let refreshRetryWindow: Int
    let sessionLifetime: Int
    let otpLifetime: Int
    let magicLinkLifetime: Int
    let otpDigits: Int
    let otpAttempts: Int
    let resendCooldown: Int
    let ceremonyLifetime: Int
    let registrationFirstname: String
    let registrationLastname: String
    let clients: [ClientRecord]
    let scopes: [ScopeRecord]
    let apps: [AppRecord]
    let rateLimits: [RateLimitRecord]
    let signingKeys: [SigningKeyRecord]
    let hintKeys: [HintKeyRecord]
    let testCodeKeys: [DataKeyRecord]
    let channels: [String]
    let phones: PhonePolicyRecord?
    let dpop: DPoPPolicyRecord
    let approvals: ApprovalPolicyRecord?
    let possession: PossessionPolicyRecord?
    let addressRules: [AddressRuleRecord]
    let brands: [BrandRecord]?
    let texts: [TextRecord]?
}

private struct ScopeRecord: Decodable {
    let name: String
    let description: String?
    let resources: [String]
    let inDiscovery: Bool
    let enabled: Bool
}

private struct HostedRecord: Decodable {
    let enabled: Bool
    let methods: [String]
    let defaultLocale: String
    let ssoIdle: Int
    let signInLifetime: Int
    let codeLifetime: Int
    let offerPasskey: Bool
}

private struct AppRecord: Decodable {
    let slug: String
    let displayName: String
    let subdomain: String?
    let registration: String
    let nativeGrantsEnabled: Bool
    let hostedEnabled: Bool
    let hostedMethods: [String]
    let defaultLocale: String
    let offerPasskey: Bool
    let registrationFirstname: String
    let registrationLastname: String
    let clients: [UUIDValue]
}

private struct RateLimitRecord: Decodable {
    let policy: String
    let dimension: String
    let permits: Int
    let per: Double
    let burst: Int
    let mode: String
}

private struct AddressRuleRecord: Decodable {
    let app: String?
    let domain: String
    let action: String
}

private struct DataKeyRecord: Decodable {
    let id: UUIDValue
    let sealed: String
}

private struct SigningKeyRecord: Decodable {
    let kid: String
    let alg: String
    let publicJwk: JWKText
    let sealedPrivate: String
    let sealedDataKey: String?
    let forRealm: Bool
    let activatesAt: Double
    let retiresAt: Double?
}

private struct HintKeyRecord: Decodable {
    let kid: String
    let alg: String
    let publicJwk: ClientKey
}

/// A public JWK: string members only, written back in a stable order.
private struct JWKText: Decodable {
    let text: String

    init(from decoder: any Decoder) throws {
        let members = try decoder.singleValueContainer().decode([String: String].self)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        text = String(decoding: try encoder.encode(members), as: UTF8.self)
    }
}

extension JSONDecoder {
    fileprivate static var snakeCase: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }
}
