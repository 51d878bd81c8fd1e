import Foundation
import PosternClient

/// Every function of the account.
let accountCommands: [String: Command] = [
    "account": { client, _ in describe(try await client.account.load()) },
    "updateAccount": { client, arguments in
        describe(try await client.account.update(arguments["changes"]?.object ?? [:]))
    },
    "deleteAccount": { client, _ in
        try await client.account.delete()
        return .null
    },
    "passkeys": { client, _ in .array(try await client.account.passkeys().map(describe)) },
    "addPasskey": { client, arguments in
        .string(try await client.account.addPasskey(with: AskingDialog(), named: arguments["name"]?.string))
    },
    "renamePasskey": { client, arguments in
        describe(try await client.account.rename(passkey: id(arguments), to: arguments["name"]?.string ?? ""))
    },
    "removePasskey": { client, arguments in
        try await client.account.remove(passkey: id(arguments))
        return .null
    },
    "passkeySignals": { client, _ in JSONValue(try await client.account.passkeySignals()) ?? .null },
    "beginTOTP": { client, _ in
        let enrolment = try await client.account.beginTOTP()
        await Held.shared.keep(enrolment, as: "enrolment")
        return ["secret": .string(enrolment.secret), "uri": .string(enrolment.uri.absoluteString)]
    },
    "finishTOTP": { client, arguments in
        let enrolment = try await Held.shared.take("enrolment", Account.TOTPEnrolment.self)
        let codes = try await client.account.finishTOTP(enrolment, code: arguments["code"]?.string ?? "")
        return .array(codes.map(JSONValue.string))
    },
    "removeTOTP": { client, _ in
        try await client.account.removeTOTP()
        return .null
    },
    "sessions": { client, _ in .array(try await client.account.sessions().map(describe)) },
    "endSession": { client, arguments in
        try await client.account.end(session: id(arguments))
        return .null
    },
    "endOtherSessions": { client, _ in
        try await client.account.endOtherSessions()
        return .null
    },
    "identifiers": { client, _ in .array(try await client.account.identifiers().map(describe)) },
    "beginIdentifier": { client, arguments in
        try described(try await client.account.beginIdentifier(address(arguments)))
    },
    "finishIdentifier": { client, arguments in
        describe(
            try await client.account.finishIdentifier(request(arguments), code: arguments["code"]?.string ?? ""))
    },
    "makePrimary": { client, arguments in
        describe(try await client.account.makePrimary(identifier: id(arguments)))
    },
    "removeIdentifier": { client, arguments in
        try await client.account.remove(identifier: id(arguments))
        return .null
    },
    "identities": { client, _ in
        .array(try await client.account.identities().map { ["id": .string($0.id), "provider": .string($0.provider)] })
    },
    "addIdentity": { client, arguments in
        .string(try await client.account.add(proof(arguments), for: request(arguments)).id)
    },
    "removeIdentity": { client, arguments in
        try await client.account.remove(identity: id(arguments))
        return .null
    },
    "consents": { client, _ in
        .array(
            try await client.account.consents().map {
                ["clientID": .string($0.clientID), "scopes": .array($0.scopes.map(JSONValue.string))]
            })
    },
    "revokeConsent": { client, arguments in
        try await client.account.revoke(consentOf: id(arguments))
        return .null
    },
    "deviceRequest": { client, arguments in
        let request = try await client.account.deviceRequest(arguments["code"]?.string ?? "")
        await Held.shared.keep(request, as: "deviceRequest")
        return ["clientID": .string(request.clientID), "scopes": .array(request.scopes.map(JSONValue.string))]
    },
    "decide": { client, arguments in
        let request = try await Held.shared.take("deviceRequest", Account.DeviceRequest.self)
        try await client.account.decide(request, decision(arguments))
        return .null
    },
]

/// `"decision"`, and `"number"` to approve with.
func decision(_ arguments: JSONValue) -> TrustedDevice.Decision {
    switch arguments["decision"]?.string {
    case "deny": .deny
    case "report": .report
    default: .approve(number: arguments["number"]?.string)
    }
}

func id(_ arguments: JSONValue) -> String { arguments["target"]?.string ?? "" }

func describe(_ date: Date?) -> JSONValue { date.map { .number($0.timeIntervalSince1970) } ?? .null }

private func describe(_ details: Account.Details) -> JSONValue {
    [
        "id": .string(details.id), "email": details.email.map(JSONValue.string) ?? .null,
        "emailVerified": .bool(details.emailVerified), "phone": details.phone.map(JSONValue.string) ?? .null,
        "firstName": details.firstName.map(JSONValue.string) ?? .null,
        "lastName": details.lastName.map(JSONValue.string) ?? .null, "hasTOTP": .bool(details.hasTOTP),
        "passkeys": .number(Double(details.passkeys)), "sessions": .number(Double(details.sessions)),
        "createdAt": describe(details.createdAt), "members": .object(details.members),
    ]
}

private func describe(_ passkey: Account.Passkey) -> JSONValue {
    [
        "id": .string(passkey.id), "name": .string(passkey.name), "rpID": .string(passkey.rpID),
        "createdAt": describe(passkey.createdAt), "lastUsedAt": describe(passkey.lastUsedAt),
    ]
}

private func describe(_ session: Account.Session) -> JSONValue {
    [
        "id": .string(session.id), "clientID": session.clientID.map(JSONValue.string) ?? .null,
        "userAgent": session.userAgent.map(JSONValue.string) ?? .null, "isCurrent": .bool(session.isCurrent),
        "isBrowser": .bool(session.isBrowser), "isBound": .bool(session.isBound),
        "level": session.level.map(JSONValue.string) ?? .null, "createdAt": describe(session.createdAt),
    ]
}

private func describe(_ identifier: Account.Identifier) -> JSONValue {
    let (kind, value) =
        switch identifier.address {
        case .email(let address): ("email", address)
        case .phone(let number, _): ("phone", number)
        }
    return [
        "id": .string(identifier.id), "kind": .string(kind), "value": .string(value),
        "isPrimary": .bool(identifier.isPrimary), "provedAt": describe(identifier.provedAt),
    ]
}
