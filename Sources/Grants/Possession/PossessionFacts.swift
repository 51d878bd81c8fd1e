import Foundation
public import Persistence

/// What is known of a transaction, as `postern.possession_facts` writes it.
public struct PossessionFacts: Decodable, Sendable {
    /// The transaction as the backend names it.
    public let id: UUIDValue
    /// The transaction as the app and URLs name it.
    public let authId: UUIDValue
    /// `mobile`, `desktop` or `none`.
    public let kind: String
    /// As in docs/decisions/0043; an expired one has failed.
    public let state: String
    /// Codes, separated by blanks.
    public let reason: String?
    /// E.164.
    public let phone: String?
    /// `client_id` of the backend.
    public let clientId: String?
    /// Whether the app has said hello.
    public let isOpened: Bool
    /// Seconds.
    public let expiresIn: Double
    /// Messages that may still be sent.
    public let sendsLeft: Int
    /// How many numbers messages were sent to.
    let numbers: Int?
    /// Seconds until the next message may be sent.
    public let cooldown: Double
    /// Wrong codes that may still be tried.
    public let triesLeft: Int
    /// Whether the app may name another number than the backend did.
    let phoneChange: Bool?
    /// Whether a link for a desktop asks for the two digits that the desktop shows.
    let linkMatch: Bool?
    /// Whether the number is a test number, which nothing is sent to.
    public let isTest: Bool
    /// The fixed code of a test number, while no server has keyed it.
    let testCode: String?
    /// The data key of the fixed code of a test number, once a server has keyed it.
    let testKey: TestKey?

    struct TestKey: Decodable {
        let id: UUIDValue
        /// Hexadecimal.
        let sealed: String
    }

    /// Whether the asking key is bound to a number and decides by itself.
    let knowsKey: Bool?
    /// The asking key as backends name it.
    public let deviceId: UUIDValue?
    /// The number as backends name it; only of a transaction that has passed.
    public let proveId: UUIDValue?
    /// `unify` or `start`: which calls may ask for the transaction.
    public let family: String?
    /// The URL that a link leads to.
    public let target: String?
    /// Whether the backend wants the risk provider to be asked.
    let checkReputation: Bool?
    /// The text of the message that the backend wants.
    let smsMessage: String?
    /// `clientRequestId` of the backend, given back as it is.
    public let requestId: String?
    /// `clientHumanId` of the backend, given back as it is.
    public let humanId: String?
    /// The person's network address, as the backend gave it; for the risk provider.
    let ip: String?
    /// The person's mail address, sealed; for the risk provider.
    let email: String?
    /// What the risk provider said: `allow`, `deny`, `unavailable`, `unknown`; `nil`: not asked.
    public let risk: String?

    /// - Throws: when the database and this binary do not understand each other.
    init(_ json: String?) throws(StoreError) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let json, let facts = try? decoder.decode(Self.self, from: Data(json.utf8)) else {
            throw .malformedResult
        }
        self = facts
    }

    /// Whether it has ended.
    public var isOver: Bool { ["passed", "failed", "redeemed"].contains(state) }
    /// Whether the number was proven.
    public var isPassed: Bool { state == "passed" || state == "redeemed" }
    /// What the app may choose to be sent.
    public var channels: [String] {
        switch kind {
        case "mobile": target == nil ? ["otp"] : ["otp", "link"]
        case "desktop": ["link"]
        default: []
        }
    }
}

/// What a backend gives when it starts; stored as it is, and given back.
public struct PossessionDetail: Encodable, Sendable {
    /// `unify` or `start`: which calls may ask for it.
    public var family: String
    /// Where the page of a link leads.
    public var target: String?
    /// Three tries at the code; present if so.
    public var retries: Bool?
    /// A bound key proves nothing; present if so.
    public var rebind: Bool?
    /// Present if the risk provider is to be asked.
    public var checkReputation: Bool?
    /// The key that the backend expects.
    public var deviceId: String?
    /// The text of the message, with a run of `#`.
    public var smsMessage: String?
    /// Text of the backend, given back.
    public var requestId: String?
    /// Text of the backend, given back.
    public var humanId: String?
    /// Text of the backend.
    public var customerId: String?
    /// The person's address, for audit and risk.
    public var ip: String?
    /// The person's mail address, for risk; sealed.
    var email: String?

    /// Nothing but whose call it was.
    public init(family: String) {
        self.family = family
    }

    func json() throws(TokenError) -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        guard let data = try? encoder.encode(self) else { throw .unavailable("encode") }
        return String(decoding: data, as: UTF8.self)
    }
}
