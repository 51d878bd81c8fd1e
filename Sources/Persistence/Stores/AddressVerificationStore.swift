/// Proofs of addresses without accounts: from the message with a code to the end of the tokens.
public struct AddressVerificationStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A browser that may have proven the address before.
    public struct Browser: Sendable {
        let cookieHash: [UInt8]
        let host: String
        let maximumAge: Int32?

        /// - Parameters:
        ///   - cookieHash: SHA-256 of the session cookie.
        ///   - host: the host that the browser asked.
        ///   - maximumAge: how old the proof may be, in seconds; `nil`: as old as a browser session.
        public init(cookieHash: [UInt8], host: String, maximumAge: Int?) {
            self.cookieHash = cookieHash
            self.host = host
            self.maximumAge = maximumAge.map { Int32(clamping: $0) }
        }

        static func arguments(_ browser: Browser?) -> Arguments {
            ["cookie_hash": browser?.cookieHash, "host": browser?.host, "max_age": browser?.maximumAge]
        }
    }

    /// A code for an address that is to be proven.
    public struct Beginning: Sendable {
        let request: SignInRequestStore.Request
        let sealedAddress: [UInt8]
        /// 16 random bytes.
        let salt: [UInt8]
        /// HMAC of the code under the server's key.
        let keyed: [UInt8]
        let message: SealedMessage

        /// - Parameter sealedAddress: what the row keeps of the address.
        public init(
            _ request: SignInRequestStore.Request, sealedAddress: [UInt8], salt: [UInt8], keyed: [UInt8],
            message: SealedMessage
        ) {
            self.request = request
            self.sealedAddress = sealedAddress
            self.salt = salt
            self.keyed = keyed
            self.message = message
        }

        func arguments(_ permits: PermitRequest) -> Arguments {
            request.arguments(permits) + ["sealed": sealedAddress, "salt": salt, "keyed": keyed] + message.arguments
        }
    }

    /// The outcome of asking for a code.
    public enum Begun: Sendable {
        /// The browser's user has proven the address lately; nothing was sent.
        case known
        /// A code was sent, now or a moment ago. The proof's id, 16 bytes.
        case handle([UInt8], isSent: Bool)
        /// The proof has caused all messages that it may.
        case sendLimit
    }

    /// What was proven, for the authorization code.
    public struct Proof: Sendable {
        let realm: UUIDValue
        let client: UUIDValue
        let id: UUIDValue
        let addressKey: String
        let subject: UUIDValue
        let acr: String
        let request: AuthorizationCodeRequest
        let source: String

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - subject: `sub` of the address at this client.
        ///   - request: with the hash of the code to store.
        public init(
            realm: UUIDValue, client: UUIDValue, id: UUIDValue, addressKey: String, subject: UUIDValue, acr: String,
            request: AuthorizationCodeRequest, source: String
        ) {
            self.realm = realm
            self.client = client
            self.id = id
            self.addressKey = addressKey
            self.subject = subject
            self.acr = acr
            self.request = request
            self.source = source
        }

        var arguments: Arguments {
            let proof: Arguments = [
                "realm": realm, "client": client, "id": id, "address_key": addressKey, "subject": subject, "acr": acr,
            ]
            return proof + Optional(request).arguments + ["source": source]
        }
    }

    /// The outcome of a try.
    public enum Proved: Sendable {
        /// What the authorization request gets.
        case answered(PageOutcome)
        /// The reason is for logs; `wrong`: codes that were compared and wrong.
        case refused(String, wrong: Int)
    }

    /// Sends a code, unless the browser's user has proven the address lately. - Returns: no outcome when a limit
    /// refused it.
    /// - Parameter brake: the realm's limit of wrong codes; `nil` while it is only watched.
    public func begin(
        _ beginning: Beginning, browser: Browser?, brake: Budget?, permits: PermitRequest
    ) async throws(StoreError) -> (Begun?, PermitVerdict) {
        try await database.one(
            Self.calls.begin,
            beginning.arguments(permits) + Browser.arguments(browser) + brake.arguments)
    }

    /// Counts the try, compares, and stores the authorization code when it is right.
    /// - Parameters:
    ///   - keyed: HMAC of the presented code under each server key.
    ///   - brake: the realm's limit of wrong codes; `nil` while it is only watched.
    public func prove(
        _ proof: Proof, keyed: [[UInt8]], amr: [String], brake: Budget?, permits: PermitRequest
    ) async throws(StoreError) -> (Proved?, PermitVerdict) {
        try await database.one(
            Self.calls.prove,
            proof.arguments + ["keyed": keyed, "amr": amr] + permits.arguments + brake.arguments)
    }

    /// Stores the authorization code for an address that the browser's user has proven lately.
    /// - Returns: ``PageOutcome/login`` when there is no such session or proof any more.
    public func share(
        _ proof: Proof, sealedAddress: [UInt8], browser: Browser
    ) async throws(StoreError) -> PageOutcome {
        try await database.one(
            Self.calls.share, proof.arguments + Browser.arguments(browser) + ["sealed": sealedAddress])
    }
}

extension AddressVerificationStore {
    struct Calls: Sendable {
        let begin = FunctionCall<(Begun?, PermitVerdict)>(
            "begin_address_verification",
            SignInRequestStore.Request.arguments + ["sealed", "salt", "keyed"] + SealedMessage.arguments
                + ["cookie_hash", "host", "max_age", Budget.brake], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), id = columns("id", UUIDValue.self)
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "known": .known
                case "send_limit": .sendLimit
                case let word: .handle(try row[id].bytes, isSent: word == "sent")
                }
            }
        }
        let prove = FunctionCall<(Proved?, PermitVerdict)>(
            "prove_address",
            [
                "realm", "client", "id", "address_key", "keyed", "subject", "amr", "acr",
                AuthorizationCodeRequest.argument, "source", PermitRequest.argument, Budget.brake,
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
            let wrong = columns("compared", Int.self)
            return columns.limited { (row) throws(StoreError) in
                guard let answered = PageOutcome(rawValue: try row[outcome]) else {
                    return .refused(try row[reason] ?? "refused", wrong: try row[wrong])
                }
                return .answered(answered)
            }
        }
        let share = FunctionCall<PageOutcome>(
            "share_address",
            [
                "realm", "client", "id", "cookie_hash", "host", "address_key", "max_age", "sealed", "subject", "acr",
                AuthorizationCodeRequest.argument, "source",
            ], effect: .once)
    }
    static let calls = Calls()
}
