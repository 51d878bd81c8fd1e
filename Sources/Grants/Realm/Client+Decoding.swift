import Encoding
import Persistence

extension Client {
    init(_ record: ClientRecord) {
        key = record.key
        clientID = record.clientId
        isConfidential = record.type == "confidential"
        enabled = record.enabled
        requiresDPoP = record.requireDpop
        matchesNumbers = record.matchNumber ?? true || record.type != "confidential"
        issuesJWTAccessTokens = record.accessTokenType == "jwt"
        rpID = record.rpId
        secretHashes = [record.secretHash, record.previousSecretHash].compactMap { $0.flatMap(Hex.decode) }
        permissions = Set(record.permissions)
        accessTokenLifetime = record.accessTokenLifetime
        refreshTokenLifetime = record.refreshTokenLifetime
        webOrigins = record.origins.filter { !$0.hasPrefix("android:") }
        androidOrigins = record.origins.filter { $0.hasPrefix("android:") }
        iosApps = record.iosApps
        androidApps = record.androidApps
        keys = record.jwks?.keys ?? []
        signingAlgorithm = record.signingAlg.flatMap(SigningAlgorithm.init)
        displayName = record.displayName
        resources = record.resources
        hosted.consent = HostedClient.Consent(rawValue: record.consent) ?? .systematic
        hosted.requiresPKCE = record.requirePkce
        hosted.requiresPAR = record.requirePar
        hosted.homeURI = record.homeUri
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
    let accessTokenType: String
    let requireDpop: Bool
    let matchNumber: Bool?
    let rpId: String?
    let accessTokenLifetime: Int?
    let refreshTokenLifetime: Int?
    let secretHash: String?
    let previousSecretHash: String?
    let permissions: [String]
    let resources: [String]
    let origins: [String]
    let iosApps: [String]
    let androidApps: [Client.AndroidApp]
    let signingAlg: String?
    let jwks: KeySet?
    let consent: String
    let requirePkce: Bool
    let requirePar: Bool
    let homeUri: String?
    let redirectUris: [String]
    let logoutUris: [String]

    struct KeySet: Decodable {
        let keys: [ClientKey]
    }
}
