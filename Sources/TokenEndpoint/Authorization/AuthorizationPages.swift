public import Grants
import HTTPTypes
public import Persistence

/// The pages that the authorization endpoint hands a browser over to.
public protocol AuthorizationPages: Sendable {
    /// Begins a sign-in, or goes on with what is due.
    /// - Parameters:
    ///   - due: ``PageOutcome/login`` without a live session.
    ///   - session: who is signed in in the browser.
    func begin(
        _ request: AuthorizationRequest, due: PageOutcome, session: BrowserSessionStore.Live?, _ exchange: Exchange
    ) async throws -> Answer
    /// A request that must not be answered at its redirect URI: 400.
    func refused(_ error: AuthorizationPageError, _ exchange: Exchange) -> Answer
    /// A form that posts a response to its redirect URI: 200.
    func formPost(_ response: AuthorizationResponse, _ exchange: Exchange) -> Answer
    /// Asks a user who is to be signed out: 200. Its form posts to `/connect/logout`, with a `tx`.
    func askToSignOut(_ request: SignOutRequest, _ exchange: Exchange) async throws -> Answer
    /// The answer to that form. - Parameter form: with a `tx`.
    func confirmSignOut(_ form: FormParameters, _ exchange: Exchange) async throws -> Answer
    /// Says that the browser is signed out: 200.
    /// - Parameter request: names the client that asked for it, if it is known, and the language.
    func signedOut(_ request: SignOutRequest, _ exchange: Exchange) -> Answer
    /// A page that can be reloaded after `retryAfter` seconds: 503, or 429 when a limit was exceeded.
    func tryAgain(after retryAfter: Int, isLimited: Bool, _ exchange: Exchange) -> Answer
    /// The same page without the name and colours of a realm: 503 while the realm's configuration cannot be read.
    var unavailable: Answer { get }
}

extension AuthorizationPages {
    /// The page of a request that cannot be read, because it is too long for one.
    func refused(_ exchange: Exchange, status: HTTPResponse.Status) -> Answer {
        let error = AuthorizationPageError.invalidRequest
        var answer = refused(error, exchange)
        answer.status = status
        return answer
    }
}
