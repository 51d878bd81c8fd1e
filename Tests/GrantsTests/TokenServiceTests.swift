@testable import Grants
import Logging
import Persistence
import Synchronization
import Testing

/// What can be wrong with a token request, in the order in which it is to be noticed.
private enum Fault: Int, CaseIterable, CustomStringConvertible {
    case grantType, clock, client, permission, realmSwitch, app, dpop, context, scope, resource, parameters, factor

    var description: String { "\(rawValue) \(Self.names[rawValue])" }
    private static let names = [
        "grant type", "clock", "client", "permission", "realm switch", "App", "DPoP", "context", "scope", "resource",
        "parameters", "factor",
    ]

    /// The answer's code, and the reason in the log, which tells apart what has the same code.
    var expected: (code: TokenError.Code, reason: String) {
        switch self {
        case .grantType: (.unsupportedGrantType, "unsupported_grant_type")
        case .clock: (.temporarilyUnavailable, "the process clock differs from the database's by more than 60 s")
        case .client: (.invalidClient, "secret from a public client")
        case .permission: (.unauthorizedClient, "permission")
        case .realmSwitch: (.unsupportedGrantType, "realm flag")
        case .app: (.invalidRequest, "client of another App")
        case .dpop: (.invalidRequest, "require_dpop")
        case .context: (.unmetAuthenticationRequirements, "no value of acr_values is in reach")
        case .scope: (.invalidScope, "unknown")
        case .resource: (.invalidTarget, "resource not allowed")
        case .parameters: (.invalidRequest, "missing proof")
        case .factor: (.invalidGrant, "wrong proof")
        }
    }
}

/// A grant that keeps what reached it.
private final class RecordingGrant: Grant {
    let grantType: GrantType
    let isNative: Bool
    let knowsScope: Bool
    let highestContext: AuthenticationContext? = .twoFactors
    private let failure: (any Error)?
    private let requests = Mutex<[TokenRequest]>([])

    init(_ grantType: GrantType = .otp, isNative: Bool = true, knowsScope: Bool = true, failure: (any Error)? = nil) {
        self.grantType = grantType
        self.isNative = isNative
        self.knowsScope = knowsScope
        self.failure = failure
    }

    func isEnabled(in realm: Realm) -> Bool { realm.nativeGrantsEnabled || !isNative }

    var redeemed: [TokenRequest] { requests.withLock { $0 } }

    func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["proof"] != nil else { throw .missing("proof") }
    }

    func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        requests.withLock { $0.append(request) }
        if let failure { throw failure }
        return TokenResponse(accessToken: "t", expiresIn: 1, scope: [], refreshToken: nil, idToken: nil, isBound: false)
    }
}

/// A request, and the realm it meets.
private struct Scenario {
    var form = ["grant_type": "urn:cocoar:otp", "client_id": "app", "proof": "1", "scope": "openid orders"]
    var resources: [String] = []
    var permissions: Set<String> = ["gt:urn:cocoar:otp", "gt:refresh_token", "scp:orders"]
    var nativeGrantsEnabled = true
    var isAppOfOthers = false
    var requiresDPoP = false
    /// How far the process clock is ahead of the database's; `nil`: not known yet. Seconds.
    var clockDifference: Double? = 0
    var failure: (any Error)?
    var grant = RecordingGrant()

    mutating func spoil(_ fault: Fault) {
        switch fault {
        case .grantType: form["grant_type"] = "password"
        case .clock: clockDifference = 61
        case .client: form["client_secret"] = "a public client has none"
        case .permission: permissions = ["gt:refresh_token", "scp:orders"]
        case .realmSwitch: nativeGrantsEnabled = false
        case .app: isAppOfOthers = true
        case .dpop: requiresDPoP = true
        case .context: form["acr_values"] = "phr"
        case .scope: form["scope"] = "openid no.such.scope"
        case .resource: resources = ["https://elsewhere.example"]
        case .parameters: form["proof"] = nil
        case .factor: grant = RecordingGrant(failure: TokenError(.invalidGrant, "Wrong.", reason: "wrong proof"))
        }
    }

    @discardableResult
    func run(_ credentials: PresentedCredentials = .init(header: .none)) async throws -> TokenResponse {
        try await service.token(encoded(), credentials: credentials, realm: realm(), source: "203.0.113.9")
    }

    private var service: TokenService {
        let limiter = RateLimiter(permits: nil)
        // No time passes between the reading and the request.
        let instant = ContinuousClock.now
        let clock = DatabaseClock(clock: { 1000 }, monotonic: { instant })
        if let clockDifference {
            clock.saw(.init(database: 1000 - clockDifference, asked: 1000, answered: 1000))
        }
        // Only an assertion would ask it.
        let database = Database(
            configuration: DatabaseConfiguration(conninfo: ""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return TokenService(
            [grant],
            clients: ClientAuthenticator(
                assertions: ClientAssertionStore(database), limiter: limiter, clock: { 1000 }),
            databaseClock: clock, proofs: .fixture(database, clock: { 1000 }))
    }

    private func encoded() throws -> FormParameters {
        let pairs = form.map { ($0.key, $0.value) } + resources.map { ("resource", $0) }
        let text = pairs.map { "\($0.0)=\($0.1.replacing(" ", with: "+"))" }.joined(separator: "&")
        return try FormParameters(parsing: Array(text.utf8))
    }

    private func realm() throws -> Realm {
        let key = UUIDValue.random()
        let realm = try Realm.fixture(
            nativeGrantsEnabled: nativeGrantsEnabled,
            clients: [
                .fixture("app", permissions: permissions, key: key, requiresDPoP: requiresDPoP),
                .fixture("bff", secret: "s3cret", permissions: permissions.union(["cap:trusted-forwarder"])),
            ])
        guard isAppOfOthers else { return realm }
        return realm.changed {
            $0.clientsOfApps = [key]
            $0.app = App(
                slug: "shop", displayName: "Shop", host: "shop.r.example", registration: .off,
                nativeGrantsEnabled: true, registrationFields: realm.registrationFields, clients: [])
        }
    }
}

@Suite("Order of checks of a token request")
struct TokenServiceTests {
    /// Every fault alone, and every two.
    private static let faults: [[Fault]] =
        Fault.allCases.map { [$0] }
        + Fault.allCases.flatMap { first in
            Fault.allCases.filter { $0.rawValue > first.rawValue }.map { [first, $0] }
        }

    @Test(
        "of two faults the earlier one answers, and the grant is asked only when nothing else is wrong",
        arguments: faults)
    private func order(_ faults: [Fault]) async throws {
        var scenario = Scenario()
        for fault in faults { scenario.spoil(fault) }
        let first = try #require(faults.first)
        let error = await #expect(throws: TokenError.self) { try await scenario.run() }
        #expect(error?.code == first.expected.code)
        #expect(error?.reason == first.expected.reason)
        #expect(scenario.grant.redeemed.count == (first == .factor ? 1 : 0))
    }

    @Test func `a request without a fault is redeemed once, with what was checked`() async throws {
        let scenario = Scenario()
        try await scenario.run()
        let request = try #require(scenario.grant.redeemed.first)
        #expect(scenario.grant.redeemed.count == 1)
        #expect(request.client.clientID == "app")
        #expect(request.source == "203.0.113.9")
        #expect(request.access.scope == ["openid", "orders"])
        #expect(request.audience == ["https://orders.example"])
    }

    @Test(arguments: [nil, ""])
    func `a request without a grant type is told which parameter is missing`(_ value: String?) async {
        var scenario = Scenario()
        scenario.form["grant_type"] = value
        await #expect(throws: TokenError.missing("grant_type")) { try await scenario.run() }
    }

    @Test(arguments: ["urn:cocoar:OTP", "urn:cocoar:otp ", " urn:cocoar:otp", "urn:cocoar:magic", "password"])
    func `a grant type is compared byte for byte`(_ value: String) async {
        var scenario = Scenario()
        scenario.form["grant_type"] = value
        let error = await #expect(throws: TokenError.self) { try await scenario.run() }
        #expect(error?.code == .unsupportedGrantType)
    }

    @Test(
        "a clock is wrong from sixty seconds on, and not while nothing is known of it",
        arguments: [
            (nil, true), (0, true), (60, true), (-60, true), (60.5, false), (-60.5, false), (1e9, false),
        ] as [(Double?, Bool)])
    func clock(_ difference: Double?, _ serves: Bool) async {
        var scenario = Scenario()
        scenario.clockDifference = difference
        #expect(((try? await scenario.run()) != nil) == serves)
    }

    @Test func `an error that says nothing to the caller becomes 'unavailable', and its text stays in the log`() async {
        struct Broken: Error {}
        var scenario = Scenario()
        for failure in [Broken(), StoreError.inDoubt, StoreError.rejected(sqlstate: "42501")] as [any Error] {
            scenario.grant = RecordingGrant(failure: failure)
            await #expect(throws: TokenError.unavailable("\(failure)")) { try await scenario.run() }
        }
    }

    @Test func `a grant that does not know its scope judges the resource itself`() async throws {
        var scenario = Scenario()
        scenario.grant = RecordingGrant(knowsScope: false)
        scenario.spoil(.resource)
        try await scenario.run()
        #expect(scenario.grant.redeemed.first?.audience == [])
        #expect(scenario.grant.redeemed.first?.access.resources == ["https://elsewhere.example"])
    }

    @Test func `a trusted forwarder's user is counted by the address that it names, another client's is not`()
        async throws
    {
        let basic = PresentedCredentials.Header.basic(.init(clientID: "bff", secret: "s3cret"))
        var scenario = Scenario()
        scenario.form["client_id"] = nil
        try await scenario.run(.init(header: basic, forwardedFor: "198.51.100.1"))
        #expect(scenario.grant.redeemed.last?.source == "198.51.100.1")
        scenario.form["client_id"] = "app"
        try await scenario.run(.init(header: .none, forwardedFor: "198.51.100.1"))
        #expect(scenario.grant.redeemed.last?.source == "203.0.113.9")
    }

    @Test func `the realm's switch hides native grants, and no others`() throws {
        let database = Database(
            configuration: DatabaseConfiguration(conninfo: ""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let service = TokenService(
            [RecordingGrant(.otp), RecordingGrant(.refreshToken, isNative: false), RecordingGrant(.magic)],
            clients: ClientAuthenticator(
                assertions: ClientAssertionStore(database), limiter: RateLimiter(permits: nil), clock: { 0 }),
            databaseClock: DatabaseClock(clock: { 0 }), proofs: .fixture(database, clock: { 0 }))
        #expect(
            service.grantTypes(for: try .fixture()) == ["refresh_token", "urn:cocoar:magic", "urn:cocoar:otp"])
        #expect(service.grantTypes(for: try .fixture(nativeGrantsEnabled: false)) == ["refresh_token"])
        #expect(service.knows("urn:cocoar:magic"))
        #expect(!service.knows("urn:cocoar:passkey"))
    }
}

@Suite("Requested scope and resource")
struct RequestedAccessTests {
    private func access(
        _ form: String, permissions: Set<String> = ["gt:refresh_token", "scp:orders"]
    ) throws -> RequestedAccess {
        try RequestedAccess(
            FormParameters(parsing: Array(form.utf8)), realm: .fixture(),
            client: .fixture("app", permissions: permissions))
    }

    private func refusal(_ form: String, permissions: Set<String> = ["gt:refresh_token", "scp:orders"]) -> TokenError? {
        do {
            _ = try access(form, permissions: permissions)
            return nil
        } catch {
            return error as? TokenError
        }
    }

    @Test func `a scope that is named twice counts once, in the order asked for`() throws {
        #expect(try access("scope=orders+openid+orders").scope == ["orders", "openid"])
        #expect(try access("").scope == [])
        #expect(try access("scope=+openid++orders+").scope == ["openid", "orders"], "empty parts vanish")
    }

    @Test(
        "a scope that is unknown, disabled or no scope token is invalid, also beside a forbidden one",
        arguments: [
            "nowhere", "off", "OPENID", "openid%22", "openid%5C", "openid%09",
            "openid,orders", "%C3%A4", "openid+nowhere",
        ])
    func invalid(_ scope: String) {
        #expect(refusal("scope=\(scope)")?.code == .invalidScope)
        #expect(refusal("scope=orders+\(scope)", permissions: [])?.code == .invalidScope)
    }

    @Test func `a scope needs its permission, and offline_access the refresh grant`() {
        #expect(refusal("scope=openid+offline_access+orders") == nil)
        #expect(refusal("scope=orders", permissions: ["scp:openid"])?.reason == "scp permission")
        #expect(refusal("scope=openid", permissions: []) == nil)
        #expect(
            refusal("scope=offline_access", permissions: ["scp:offline_access"])?.reason
                == "offline_access without refresh_token")
    }

    @Test func `a scope of 4096 bytes is read, a longer one is not`() {
        // The last name is cut short: what is read has an unknown scope.
        let names = Array(repeating: "openid", count: 600).joined(separator: "+")
        #expect(refusal("scope=" + names.prefix(4096))?.code == .invalidScope)
        #expect(refusal("scope=" + names.prefix(4097))?.reason == "scope size")
    }

    @Test func `thirty-two resources are read, one more is not`() {
        let resources = { (count: Int) in Array(repeating: "resource=a", count: count).joined(separator: "&") }
        #expect(refusal(resources(32)) == nil)
        #expect(refusal(resources(33))?.code == .invalidTarget)
    }

    @Test func `the audience is what the granted scopes are for, narrowed by resource, else the client`() throws {
        let (realm, client) = (try Realm.fixture(), Client.fixture("app"))
        #expect(try access("scope=openid").audience(of: ["openid"], realm: realm, client: client) == ["app"])
        let orders = "https://orders.example"
        #expect(try access("").audience(of: ["orders"], realm: realm, client: client) == [orders])
        #expect(try access("resource=\(orders)").audience(of: ["orders"], realm: realm, client: client) == [orders])
        #expect(throws: TokenError.self) {
            try access("resource=\(orders)").audience(of: ["openid"], realm: realm, client: client)
        }
        #expect(
            try access("resource=\(orders)/").audience(of: ["orders"], realm: realm, client: client) == [orders],
            "an empty path is a slash; the audience is spelled as registered")
    }
}
