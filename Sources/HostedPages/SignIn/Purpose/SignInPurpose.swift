import Grants
import Persistence
import TokenEndpoint

/// What a sign-in on the pages is for: who asks for it, by what a person may sign in, and what follows.
///
/// Steps, flows and pages know no more of it than this. An authorization request is one purpose
/// (``AuthorizationPurpose``). Members with a default are those of a purpose that the host itself has: without client,
/// redirect URI and scope.
protocol SignInPurpose: Sendable {
    // MARK: Who asks

    /// The realm with the settings of the App that the pages show.
    var realm: Realm { get }
    /// The client that asks; `nil`: the host itself.
    var client: Client? { get }
    /// Languages that were asked for, in their order (`ui_locales`).
    var uiLocales: [String] { get }
    /// To be filled into the address field; not checked.
    var loginHint: String? { get }
    /// The device that asks, as its account may know it, where the browser does not say it.
    var hintedDevice: (user: UUIDValue, session: UUIDValue)? { get }

    // MARK: By what a person may sign in

    /// The rules of the steps, on a page of `host`.
    func rules(host: String) -> SignInRules
    /// Whether it can be met at all, as far as the configuration tells.
    func canBeMet(under rules: SignInRules) -> Bool
    /// Whether the session that the browser has will not do.
    var wantsLogin: Bool { get }
    /// Whether it begins with a registration, where one is offered.
    var wantsRegistration: Bool { get }
    /// The kinds of address by which a signed-in user can meet it; `nil`: one more address would not do.
    var provableAddresses: (mail: Bool, phone: Bool)? { get }
    /// What does the forms of a sign-in for it.
    func flow(of transaction: SignInTransaction, _ parts: PageParts) -> any PageFlow

    // MARK: What follows

    /// Where the browser goes at the end, as people know it: a host or a scheme; `nil`: it stays on this host.
    var destination: String? { get }
    /// Whether the browser of the page is where the sign-in ends, so that a script may go on there by itself.
    var endsInBrowser: Bool { get }
    /// The scope that a person is asked to allow.
    var scope: [String] { get }
    /// What the statement of a proof answers; `nil`: it signs the browser in, and nothing else.
    /// - Parameter code: to be issued when nothing is due; `nil`: none.
    func request(issuing code: AuthorizationCode?) -> AuthorizationCodeRequest?
    /// What follows when a person has proven something.
    /// - Parameters:
    ///   - outcome: what the statement of the proof said; ``PageOutcome/continue`` where it answered no request.
    ///   - code: the one that ``request(issuing:)`` was given.
    func answer(_ outcome: PageOutcome, _ code: AuthorizationCode) async throws -> PurposeAnswer
    /// What follows when the user of a signed-in browser goes on.
    /// - Parameters:
    ///   - isProved: that user proved a factor for this purpose.
    ///   - consents: the user allows it, now.
    /// - Returns: and the cookie that the browser is to get again.
    func confirm(
        _ cookie: BrowserCookie, host: String, isProved: Bool, consents: Bool
    ) async throws -> (PurposeAnswer, SessionCookie?)
    /// Where the browser goes without what it came for: where cancel leads, too.
    func refuse(_ refusal: PurposeRefusal) async throws -> SignInEnd

    // MARK: Between two forms

    /// It in bytes, for the state of a page; the first is the ``PurposeReader/mark`` of its kind. At most
    /// ``SignInTransaction/maximumPurpose``.
    func encoded(_ exchange: Exchange) async throws -> [UInt8]
}

/// What follows for a purpose.
enum PurposeAnswer: Sendable {
    /// Nothing is due any more.
    case end(SignInEnd)
    /// Something is due on a page first.
    case due(PageOutcome)
}

/// Where a browser goes at the end of a sign-in.
enum SignInEnd: Sendable {
    /// To a client. - Parameter codeHash: of the code in the response, as the database knows it.
    case response(AuthorizationResponse, codeHash: [UInt8]?)
    /// To a page of this host: path and query.
    case page(String)
}

/// Why a purpose is not met.
enum PurposeRefusal: Sendable {
    /// The person does not want it.
    case denied
    /// What was proven does not suffice, and nothing else can be proven here.
    case unmet
    /// It is for another user than the one who signed in.
    case otherUser
}

extension SignInPurpose {
    var client: Client? { nil }
    var uiLocales: [String] { [] }
    var loginHint: String? { nil }
    var hintedDevice: (user: UUIDValue, session: UUIDValue)? { nil }
    func rules(host: String) -> SignInRules { SignInRules(realm) }
    func canBeMet(under rules: SignInRules) -> Bool { true }
    var wantsLogin: Bool { false }
    var wantsRegistration: Bool { false }
    var provableAddresses: (mail: Bool, phone: Bool)? { nil }
    func flow(of transaction: SignInTransaction, _ parts: PageParts) -> any PageFlow { SignInFlow(parts: parts) }
    var destination: String? { nil }
    var endsInBrowser: Bool { true }
    var scope: [String] { [] }
    func request(issuing code: AuthorizationCode?) -> AuthorizationCodeRequest? { nil }
}

/// Reads the purposes of one kind from the state of a page.
protocol PurposeReader: Sendable {
    /// The first byte of its purposes. Each kind has another.
    var mark: UInt8 { get }
    /// Reads one again, under the present configuration. - Parameter bytes: without the mark.
    func purpose(_ bytes: [UInt8], _ exchange: Exchange) async throws -> any SignInPurpose
    /// The client that asks, as far as the configuration tells, for the way back from an error.
    func client(_ bytes: [UInt8], in realm: Realm) -> Client?
}

/// The purposes that the pages know.
struct PurposeReaders: Sendable {
    let all: [any PurposeReader]

    /// - Throws: the page for what is of no kind, and what the reader throws.
    func purpose(_ bytes: [UInt8], _ exchange: Exchange) async throws -> any SignInPurpose {
        guard let reader = reader(of: bytes) else { throw PageError(.invalidRequest) }
        return try await reader.purpose(Array(bytes.dropFirst()), exchange)
    }

    func client(_ bytes: [UInt8], in realm: Realm) -> Client? {
        reader(of: bytes)?.client(Array(bytes.dropFirst()), in: realm)
    }

    private func reader(of bytes: [UInt8]) -> (any PurposeReader)? { all.first { $0.mark == bytes.first } }
}
