import Foundation

// What the sign-ins keep of a request under way.
extension PendingRequest {
    enum Kind: String {
        /// A code that signs in.
        case code
        /// The same, asked for to register.
        case registration
        /// A code that adds an address to the account.
        case identifier
        case link, approval, device, provider
    }

    /// - Parameters:
    ///   - handle: what the server knows the request by. It is a secret.
    ///   - lifetime: in seconds.
    init(_ kind: Kind, handle: String, lifetime: TimeInterval, _ members: [String: JSONValue] = [:], at now: Date) {
        self.init(kind: kind.rawValue, members)
        set("handle", handle)
        set("expires", now.addingTimeInterval(lifetime))
    }

    var knownKind: Kind? { Kind(rawValue: kind) }
    var handle: String { string("handle") ?? "" }
    var expiresAt: Date { date("expires") ?? .distantPast }

    var resendAt: Date? {
        get { date("resend") }
        set { set("resend", newValue) }
    }

    var sendsLeft: Int? {
        get { members["sendsLeft"]?.integer }
        set { members["sendsLeft"] = newValue.map { .number(Double($0)) } }
    }

    /// Seconds between two polls, 1 to 60.
    var interval: TimeInterval { min(max(members["interval"]?.number ?? 5, 1), 60) }

    /// What the request was made of, but for handles: sent again with another message.
    var asked: [String: JSONValue] {
        get { members["asked"]?.object ?? [:] }
        set { members["asked"] = .object(newValue) }
    }

    /// As the app sees it.
    var codeRequest: CodeRequest? {
        guard knownKind == .code || knownKind == .registration || knownKind == .identifier,
            let address = Address(members: asked), let resendAt
        else { return nil }
        return CodeRequest(id: id, address: address, expiresAt: expiresAt, resendAt: resendAt, sendsLeft: sendsLeft)
    }

    /// As the app sees it.
    var signIn: PendingSignIn? {
        guard let kind = PendingSignIn.Kind(rawValue: kind) else { return nil }
        return PendingSignIn(
            id: id, kind: kind, matchNumber: string("matchNumber"), expiresAt: expiresAt, resendAt: resendAt,
            userCode: string("userCode"), verificationURL: string("page").flatMap { URL(string: $0) },
            completeVerificationURL: string("completePage").flatMap { URL(string: $0) })
    }

    /// As the app sees it; `nil` for what ``PosternClient/pending`` does not list.
    var listed: Pending? {
        if let signIn { return .signIn(signIn) }
        return codeRequest.map(Pending.code)
    }
}

extension PosternClient {
    /// What was asked for and seems alive by the clock of the device, the newest last. Whether it is, the server decides.
    public var pending: [Pending] {
        get async throws {
            let now = surroundings.now()
            return try await document().pending.filter { $0.expiresAt > now }.compactMap(\.listed)
        }
    }

    /// Gives a request up: its code, link or approval opens no session here any more.
    public func forget(_ pending: Pending) async throws {
        let id =
            switch pending {
            case .code(let request): request.id
            case .signIn(let request): request.id
            }
        try await change { $0.forget(pending: id) }
        end(poll: id, .failure(PosternError.cancelled))
    }

    /// The request of an id; `nil` when it is over, or was made elsewhere.
    func pendingRequest(_ id: String) async throws -> PendingRequest? {
        try await document().pending.last { $0.id == id }
    }
}
