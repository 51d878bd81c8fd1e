import Foundation
import PosternClient

func describe(_ error: any Error) -> JSONValue {
    guard let error = error as? PosternError else { return ["case": "foreign", "text": .string("\(type(of: error))")] }
    switch error {
    case .stepUpNeeded(let challenge):
        return [
            "case": "stepUpNeeded", "levels": .array(challenge.levels.map(JSONValue.string)),
            "maxAge": challenge.maxAge.map { .number(Double($0)) } ?? .null,
        ]
    case .namesNeeded(let names): return ["case": "namesNeeded", "names": .array(names.map(JSONValue.string))]
    case .rateLimited(let seconds): return ["case": "rateLimited", "retryAfter": .number(seconds)]
    case .unavailable(let seconds):
        return ["case": "unavailable", "retryAfter": seconds.map(JSONValue.number) ?? .null]
    case .signedOut(let reason): return ["case": "signedOut", "reason": .string(reason.rawValue)]
    case .refused(let code, let text, let status):
        return [
            "case": "refused", "code": .string(code), "description": text.map(JSONValue.string) ?? .null,
            "status": .number(Double(status)),
        ]
    case .misuse(let text): return ["case": "misuse", "text": .string(text)]
    case .wrongCode, .secondFactorNeeded, .secondFactorWrong, .denied, .expired, .addressProofNeeded, .foreignLink,
        .cancelled:
        return ["case": .string("\(error)")]
    }
}

func describe(_ state: SessionState) -> JSONValue {
    switch state {
    case .signedIn(let user): ["case": "signedIn", "user": describe(user)]
    case .signedOut(let reason): ["case": "signedOut", "reason": .string(reason.rawValue)]
    case .locked: ["case": "locked"]
    }
}

func describe(_ user: User) -> JSONValue {
    [
        "id": .string(user.id), "sessionID": .string(user.sessionID),
        "methods": .array(user.methods.map(JSONValue.string)), "level": user.level.map(JSONValue.string) ?? .null,
        "email": user.email.map(JSONValue.string) ?? .null,
        "authenticatedAt": .number(user.authenticatedAt.timeIntervalSince1970), "claims": .object(user.claims),
    ]
}

func describe(_ token: AccessToken) -> JSONValue {
    [
        "value": .string(token.value), "type": .string(token.type.rawValue),
        "scopes": .array(token.scopes.map(JSONValue.string)),
        "expiresAt": .number(token.expiresAt.timeIntervalSince1970),
    ]
}
