import Encoding
import Persistence

extension Client {
    init(_ record: ClientRecord) {
        key = record.key
        clientID = record.clientId
        isConfidential = record.type == "confidential"
        enabled = record.enabled
        requiresDPoP = record.settings.requireDpop
        matchesNumbers = record.matchNumber ?? true || record.type != "confidential"
        issuesJWTAccessTokens = record.settings.accessTokenType == "jwt"
        rpID = record.settings.rpId
        secretHashes = [record.secretHash, record.previousSecretHash].compactMap { $0.flatMap(Hex.decode) }
        permissions = Set(record.permissions)
        accessTokenLifetime = record.settings.accessTokenLifetime
        refreshTokenLifetime = record.settings.refreshTokenLifetime
        webOrigins = record.origins.filter { !$0.hasPrefix("android:") }
        androidOrigins = record.origins.filter { $0.hasPrefix("android:") }
        iosApps = record.iosApps
        androidApps = record.androidApps
        keys = record.jwks?.keys ?? []
        // `realm`, too, is none of its own.
        signingAlgorithm = SigningAlgorithm(rawValue: record.settings.signingAlg)
        displayName = record.displayName
        resources = record.resources
        hosted.consent = HostedClient.Consent(rawValue: record.settings.consent) ?? .systematic
        hosted.requiresPKCE = record.settings.requirePkce
        hosted.requiresPAR = record.settings.requirePar
        hosted.homeURI = record.settings.homeUri
        hosted.redirectURIs = record.redirectUris
        hosted.postLogoutURIs = record.logoutUris
    }
}

/// A client as `postern.realm_config` answers it.
struct ClientRecord: Decodable {
    let key: UUIDValue
    let clientId: String
    let displayName: String
    let type: String
    let enabled: Bool
    let settings: Settings
    let matchNumber: Bool?
    let secretHash: String?
    let previousSecretHash: String?
    let permissions: [String]
    let resources: [String]
    let origins: [String]
    let iosApps: [String]
    let androidApps: [Client.AndroidApp]
    let jwks: KeySet?
    let redirectUris: [String]
    let logoutUris: [String]

    /// What administrators set, with the defaults of `postern.client_setting` where they set nothing. A setting that
    /// has none, and one that not every schema of this binary has, is optional.
    struct Settings: Decodable {
        let accessTokenType: String
        let accessTokenLifetime: Int?
        let refreshTokenLifetime: Int?
        let signingAlg: String
        let requireDpop: Bool
        let requirePkce: Bool
        let requirePar: Bool
        let consent: String
        let rpId: String?
        let homeUri: String?
    }

    struct KeySet: Decodable {
        let keys: [ClientKey]
    }
}
