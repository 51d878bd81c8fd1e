import Foundation

extension PosternClient {
    /// What the server says of itself: whether one may register, and with which names.
    public func appInfo() async throws -> AppInfo {
        try await accepted(Call(method: "GET", path: "/api/app-info"), as: .other).item(AppInfo.init)
    }

    /// Asks for a code by mail or phone. The answer is the same whether the address has an account or not.
    /// - Parameter names: for an account that the code may create.
    /// - Throws: ``PosternError/namesNeeded(_:)`` when the server wants names that are missing.
    public func requestCode(to address: Address, names: Names? = nil) async throws -> CodeRequest {
        try await askForCode(.code, asking: address, names)
    }

    /// Asks for a code that creates an account, where ``AppInfo/registration`` is ``AppInfo/Registration/explicit``.
    public func register(_ address: Address, names: Names? = nil) async throws -> CodeRequest {
        try await askForCode(.registration, asking: address, names)
    }

    /// Asks for another message with a code. Sooner than ``CodeRequest/resendAt`` none is sent, and the same request comes
    /// back.
    public func resend(_ request: CodeRequest) async throws -> CodeRequest {
        guard let former = try await pendingRequest(request.id), let kind = former.knownKind,
            former.codeRequest != nil
        else { throw PosternError.misuse("the request is over: ask for another code") }
        return try await code(askAgain(kind, former))
    }

    /// Signs in with a code.
    /// - Parameters:
    ///   - code: as typed; the server reads digits of every script, spaces and hyphens.
    ///   - secondFactor: for an account that has one.
    /// - Throws: ``PosternError/wrongCode``, ``PosternError/secondFactorNeeded``, ``PosternError/secondFactorWrong``; the
    ///   request stays, and the next try may be right. ``PosternError/unavailable(retryAfter:)`` after 45 seconds without an
    ///   answer: the same code may be sent again.
    public func signIn(
        code: String, for request: CodeRequest, secondFactor: SecondFactor? = nil
    ) async throws -> User {
        try await signIn(code: code, for: request, secondFactor: secondFactor, Demand())
    }

    func signIn(
        code: String, for request: CodeRequest, secondFactor: SecondFactor?, _ demand: Demand
    ) async throws -> User {
        let pending = try await typed(code, for: request, [.code, .registration])
        let form = [("grant_type", GrantType.code), ("auth_session", pending.handle), ("otp_code", code), scopeField]
        let answer = try await token(
            form + [secondFactor?.field].compactMap { $0 } + demand.form, as: .code, repeats: .whileLost)
        return try await establish(answer, finishing: pending.id, subject: demand.subject)
    }

    /// The request that a typed code is for.
    func typed(_ code: String, for request: CodeRequest, _ kinds: [PendingRequest.Kind]) async throws -> PendingRequest
    {
        guard !code.allSatisfy(\.isWhitespace) else { throw PosternError.misuse("the code is empty") }
        // Without a handle the code is one of a request that is over.
        guard let pending = try await pendingRequest(request.id) else { throw PosternError.wrongCode }
        guard let kind = pending.knownKind, kinds.contains(kind) else {
            throw PosternError.misuse("a code that adds an address is for account.finishIdentifier, others for signIn")
        }
        return pending
    }

    private func askForCode(
        _ kind: PendingRequest.Kind, asking address: Address, _ names: Names?
    ) async throws -> CodeRequest {
        try await code(ask(kind, address.members.merging(names?.members ?? [:]) { $1 }))
    }

    func code(_ pending: PendingRequest) throws -> CodeRequest {
        guard let request = pending.codeRequest else { throw PosternError.unavailable(retryAfter: nil) }
        return request
    }
}

/// Values of `grant_type`.
enum GrantType {
    static let code = "urn:cocoar:otp"
    static let link = "urn:cocoar:magic"
    static let passkey = "urn:cocoar:passkey"
    static let approval = "urn:openid:params:grant-type:ciba"
    static let deviceCode = "urn:ietf:params:oauth:grant-type:device_code"
    static let authorizationCode = "authorization_code"
    static let trustedDevice = "urn:postern:device"
    static let possession = "urn:postern:possession"
    static let tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
}

/// What a sign-in has to reach beside being one.
struct Demand: Sendable {
    /// `acr_values`.
    var levels: [String] = []
    /// Who alone may sign in.
    var subject: String?

    var form: [(String, String)] { levels.isEmpty ? [] : [("acr_values", levels.joined(separator: " "))] }
}
