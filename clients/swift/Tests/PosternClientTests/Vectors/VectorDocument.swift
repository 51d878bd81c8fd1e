import Foundation

@testable import PosternClient

/// What the steps say of the store, as the library's document and back; and of results.
enum VectorDocument {
    static let key = VectorFile.proofs.members["keys"]?["vector-key-1"] ?? .null
    static let publicKey = key["public"] ?? .null

    static func scopes(_ vector: VectorCase) -> [String] {
        (vector.members["client"]?["scopes"]?.string ?? "openid offline_access").split(separator: " ").map(String.init)
    }

    static func make(_ facts: JSONValue, _ file: VectorFile, _ vector: VectorCase) throws -> Document {
        var document = Document()
        if facts["key"]?.bool != false, let secret = key["private"]?["d"]?.string.flatMap(Base64URL.decode) {
            document.key = StoredKey(.software, secret)
        }
        return try changed(document, facts, file, vector)
    }

    static func changed(
        _ former: Document, _ facts: JSONValue, _ file: VectorFile, _ vector: VectorCase
    ) throws -> Document {
        var document = former
        if let session = facts["session"], let idToken = session["idToken"]?.string {
            var made = StoredSession(
                idToken: idToken, refreshToken: session["refresh"]?.string, scopes: scopes(vector),
                key: session["bound"]?.bool == true ? key["thumbprint"]?.string : nil)
            if let present = former.session, present.user?.sessionID == made.user?.sessionID {
                made.set("id", present.id)
            }
            document.session = made
        }
        if let tokens = facts["access"]?.array { document.tokens = tokens.compactMap { token($0, file, document) } }
        if let hint = facts["hint"]?.string { document.hint = hint }
        return document
    }

    private static func token(_ fact: JSONValue, _ file: VectorFile, _ document: Document) -> StoredToken? {
        guard let value = fact["value"]?.string, let issued = fact["issued"]?.number,
            let expires = fact["expires"]?.number
        else { return nil }
        func date(_ seconds: Double) -> Date {
            Date(timeIntervalSince1970: (file.members["epoch"]?.number ?? 0) + seconds)
        }
        let token = AccessToken(
            value: value, type: document.session?.boundKey == nil ? .bearer : .dpop, scopes: [],
            expiresAt: date(expires))
        return StoredToken(token, audience: audience(fact["audience"]).name, issuedAt: date(issued))
    }

    static func audience(_ fact: JSONValue?) -> Audience {
        if let scopes = fact?["scopes"]?.strings {
            return .api(scopes: scopes, resource: fact?["resource"]?.string.flatMap { URL(string: $0) })
        }
        return fact?.string == "account" ? .account : .default
    }

    /// - Parameter names: of calls by the ids of the requests that they made.
    static func facts(_ document: Document, _ names: [String: String]) -> JSONValue {
        let session = document.session
        return [
            "session": session?.user.map { .string($0.sessionID) } ?? .null,
            "refresh": session?.refreshToken.map(JSONValue.string) ?? .null,
            "access": .array(document.tokens.map { .string($0.value) }),
            "hint": document.hint.map(JSONValue.string) ?? .null,
            "pending": .array(document.pending.map { .string(names[$0.id] ?? $0.id) }),
            "revoke": .array(document.toRevoke.map(JSONValue.string)), "key": .bool(document.key != nil),
            "clock": .number(document.clockOffset),
        ]
    }

    static func described(_ error: any Error) -> JSONValue {
        func seconds(_ name: String, _ value: TimeInterval?) -> [String: JSONValue] {
            value.map { [name: .number($0)] } ?? [:]
        }
        let members: [String: JSONValue] =
            switch error as? PosternError {
            case .wrongCode: ["error": "wrongCode"]
            case .secondFactorNeeded: ["error": "secondFactorNeeded"]
            case .secondFactorWrong: ["error": "secondFactorWrong"]
            case .denied: ["error": "denied"]
            case .expired: ["error": "expired"]
            case .stepUpNeeded: ["error": "stepUpNeeded"]
            case .addressProofNeeded: ["error": "addressProofNeeded"]
            case .namesNeeded(let names): ["error": "namesNeeded", "names": .array(names.map(JSONValue.string))]
            case .rateLimited(let pause): ["error": "rateLimited", "retryAfter": .number(pause)]
            case .unavailable(let pause): ["error": "unavailable"].merging(seconds("retryAfter", pause)) { $1 }
            case .signedOut(let reason): ["error": "signedOut", "reason": .string(reason.rawValue)]
            case .foreignLink: ["error": "foreignLink"]
            case .cancelled: ["error": "cancelled"]
            case .refused(let code, _, let status):
                ["error": "refused", "code": .string(code), "status": .number(Double(status))]
            case .misuse: ["error": "misuse"]
            case nil: ["error": .string("no PosternError: \(error)")]
            }
        return .object(members)
    }
}

extension SessionState {
    var described: JSONValue {
        switch self {
        case .signedIn(let user): .string("signedIn:\(user.id)")
        case .signedOut(let reason): .string("signedOut:\(reason.rawValue)")
        case .locked: "locked"
        }
    }
}
