/// Forms that were sent, and what they led to: the same form sent again is answered as the first was.
public struct SentFormStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// Who sends what. Each is a SHA-256, or a hash of the same length.
    public struct Name: Sendable {
        /// Of what only the requester has.
        public let requester: [UInt8]
        /// Of all that the form says.
        public let form: [UInt8]

        /// Takes 32 bytes each.
        public init(requester: [UInt8], form: [UInt8]) {
            self.requester = requester
            self.form = form
        }
    }

    /// How a form stands.
    public enum Standing: Sendable, Equatable {
        /// This request does what it asks for, and then says so (``end(_:realm:by:with:)``).
        case begun
        /// Another request does; it has no answer yet.
        case underWay
        /// The sealed answer of another request. `isSpent`: its code for the client opens nothing any more.
        case answered(sealed: [UInt8], isSpent: Bool)
    }

    /// What a form led to.
    public struct Ending: Sendable {
        /// The answer, sealed: at most ``SentFormStore/maximumSealed`` bytes.
        public let sealed: [UInt8]
        /// It answers later requests, too; else only those that wait for it.
        public let isKept: Bool
        /// SHA-256 of the cookie of the browser session that must live.
        public let cookieHash: [UInt8]?
        /// The hash of the code in it, as it is stored.
        public let codeHash: [UInt8]?

        public init(sealed: [UInt8], isKept: Bool, cookieHash: [UInt8]?, codeHash: [UInt8]?) {
            self.sealed = sealed
            self.isKept = isKept
            self.cookieHash = cookieHash
            self.codeHash = codeHash
        }
    }

    /// Longer answers are not remembered.
    public static let maximumSealed = 65_536

    /// Begins what a form asks for, unless the same form was sent a minute ago or less.
    /// - Parameters:
    ///   - mark: of this request.
    ///   - host: the host that it came to.
    ///   - hasWaited: it found the form under way before.
    public func begin(
        _ name: Name, realm: UUIDValue, by mark: UUIDValue, host: String, hasWaited: Bool
    ) async throws(StoreError) -> Standing {
        try await database.one(
            Self.calls.begin,
            [
                "realm": realm, "requester": name.requester, "form": name.form, "mark": mark, "host": host,
                "has_waited": hasWaited,
            ])
    }

    /// Notes what a form led to. - Parameter ending: `nil`: nothing was done, and it is forgotten.
    public func end(
        _ name: Name, realm: UUIDValue, by mark: UUIDValue, with ending: Ending?
    ) async throws(StoreError) {
        try await database.one(
            Self.calls.end,
            [
                "realm": realm, "requester": name.requester, "mark": mark, "keeps": ending?.isKept ?? false,
                "cookie_hash": ending?.cookieHash, "code_hash": ending?.codeHash, "sealed": ending?.sealed,
            ])
    }
}

extension SentFormStore {
    struct Calls: Sendable {
        let begin = FunctionCall<Standing>(
            "begin_form", ["realm", "requester", "form", "mark", "host", "has_waited"], effect: .idempotent
        ) { columns in
            let outcome = columns("outcome", String.self), sealed = columns("sealed", [UInt8]?.self)
            return { (row) throws(StoreError) in
                switch try row[outcome] {
                case "begun": return .begun
                case "under_way": return .underWay
                case let found: return .answered(sealed: try row[sealed] ?? [], isSpent: found == "spent")
                }
            }
        }
        let end = FunctionCall<Void>(
            "end_form", ["realm", "requester", "mark", "keeps", "cookie_hash", "code_hash", "sealed"],
            effect: .idempotent)
    }
    static let calls = Calls()
}
