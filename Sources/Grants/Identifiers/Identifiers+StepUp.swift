public import Persistence

extension Identifiers {
    /// The signed-in browser in which an address is proven.
    public struct Browser: Sendable {
        let cookieHash: [UInt8]
        let newCookieHash: [UInt8]
        let host: String

        /// - Parameters:
        ///   - cookieHash: SHA-256 of the cookie that the browser showed.
        ///   - newCookieHash: SHA-256 of the one that it gets.
        ///   - host: the host that it asked.
        public init(cookieHash: [UInt8], newCookieHash: [UInt8], host: String) {
            self.cookieHash = cookieHash
            self.newCookieHash = newCookieHash
            self.host = host
        }
    }

    /// Proves one more address of a browser's user by the code that was sent there.
    /// - Returns: the answer to the authorization request; ``PageOutcome/login`` when the browser was signed out.
    /// - Throws: ``Failure``, or what the database threw.
    public func prove(
        authSession: String, code: TypedCode, in browser: Browser, answering request: AuthorizationCodeRequest,
        realm: Realm, source: String
    ) async throws -> PageOutcome {
        guard let handle = AuthSessionHandle(authSession, realm: realm.id, keyring: keyring) else { throw Failure.code }
        let proved = try await store.prove(
            IdentifierStore.StepUp(
                realm: realm.id, cookieHash: browser.cookieHash, newCookieHash: browser.newCookieHash,
                host: browser.host, handle: handle.id,
                keyed: keyring.keys.map { Self.keyed(code, realm, handle.addressKey, $0) },
                amr: MessageAddress.amr(by: handle.channel), request: request, source: source))
        switch proved {
        case .answered(let outcome): return outcome
        case .inUse: throw Failure.inUse
        case .tooMany: throw Failure.tooMany
        case .refused: throw Failure.code
        }
    }
}
