import Foundation

/// What a store has: key, session, access tokens, last ID token, requests under way, tokens still to revoke.
struct Document: StoredObject {
    static let format = 1
    static let mostTokens = 8, mostPending = 8, mostToRevoke = 5
    /// A document has some kilobytes. What is larger is none.
    static let mostBytes = 1 << 20

    var members: [String: JSONValue]

    init() { members = ["v": .number(Double(Self.format))] }

    enum Unreadable: Error, Equatable {
        /// A newer version of the library wrote it.
        case newer
        case damaged
    }

    /// - Throws: ``Unreadable``.
    init(_ data: Data?) throws {
        self.init()
        guard let data else { return }
        guard let members = JSONValue(data)?.object, let version = members["v"]?.number, version >= 1 else {
            throw Unreadable.damaged
        }
        guard version <= Double(Self.format) else { throw Unreadable.newer }
        self.members = members
        if members["session"] != nil, session == nil { throw Unreadable.damaged }
        if members["key"] != nil, key == nil { throw Unreadable.damaged }
    }

    /// What the store keeps: nothing when there is nothing to keep.
    var data: Data? { members.count == 1 ? nil : JSONValue.object(members).data }

    var key: StoredKey? {
        get { members["key"]?.object.flatMap(StoredKey.init) }
        set { members["key"] = newValue.map { .object($0.members) } }
    }

    var session: StoredSession? {
        get { members["session"]?.object.flatMap(StoredSession.init) }
        set { members["session"] = newValue.map { .object($0.members) } }
    }

    /// Why there is no session.
    var reason: SignOutReason {
        get { string("reason").flatMap(SignOutReason.init) ?? .never }
        set { set("reason", newValue == .never ? nil : newValue.rawValue) }
    }

    /// The last ID token, also after the session has ended: it vouches for this device (`IdTokenHint`).
    var hint: String? {
        get { string("hint") }
        set { set("hint", newValue) }
    }

    /// `issuer` of the server's metadata, once it was asked for.
    var issuer: String? {
        get { string("issuer") }
        set { set("issuer", newValue) }
    }

    /// Seconds that the server's clock is ahead of the device's.
    var clockOffset: TimeInterval {
        get { members["clock"]?.number ?? 0 }
        set { members["clock"] = newValue == 0 ? nil : .number(newValue) }
    }

    /// Access tokens of the session, the newest last.
    var tokens: [StoredToken] {
        get { objects("tokens").compactMap(StoredToken.init) }
        set { set("tokens", Array(newValue.suffix(Self.mostTokens))) }
    }

    /// Requests of sign-ins under way, the newest last.
    var pending: [PendingRequest] {
        get { objects("pending").compactMap(PendingRequest.init) }
        set { set("pending", Array(newValue.suffix(Self.mostPending))) }
    }

    /// Tokens that the server is still to be told to revoke, the newest last.
    var toRevoke: [String] {
        get { strings("revoke") }
        set { set("revoke", Array(newValue.suffix(Self.mostToRevoke))) }
    }

    var state: SessionState {
        if let user = session?.user { .signedIn(user) } else { .signedOut(reason) }
    }
}

extension Document {
    /// Ends the session here. - Parameter revoking: whether the server is still to be told.
    mutating func endSession(_ why: SignOutReason, revoking: Bool = false) {
        if revoking, let token = session?.refreshToken ?? tokens.last?.value { toRevoke.append(token) }
        session = nil
        tokens = []
        reason = why
    }

    /// Puts a token in the place of the one of its audience.
    mutating func keep(_ token: StoredToken) {
        tokens = tokens.filter { $0.audience != token.audience } + [token]
    }

    /// Puts a request in the place of the one of its id.
    mutating func keep(_ request: PendingRequest) {
        pending = pending.filter { $0.id != request.id } + [request]
    }

    /// Removes a request that is over.
    mutating func forget(pending id: String?) { pending.removeAll { $0.id == id } }
}
