import Foundation
import PosternClient

/// The trusted device, and checks of phone numbers.
let deviceCommands: [String: Command] = [
    "enrolDevice": { client, arguments in
        describe(
            try await client.device.enrol(
                named: arguments["name"]?.string, pushHandle: arguments["pushHandle"]?.string))
    },
    "device": { client, _ in try await client.device.info().map(describe) ?? .null },
    "updateDevice": { client, arguments in
        describe(
            try await client.device.update(
                named: arguments["name"]?.string, pushHandle: arguments["pushHandle"]?.string))
    },
    "removeDevice": { client, _ in
        try await client.device.remove()
        return .null
    },
    // Reads until there are approvals, or the stream ends.
    "inbox": { client, _ in
        for try await inbox in client.device.inbox where !inbox.approvals.isEmpty {
            for approval in inbox.approvals { await Held.shared.keep(approval, as: approval.id) }
            return .array(inbox.approvals.map(describe))
        }
        return .null
    },
    // Reads what there is at once.
    "inboxNow": { client, _ in
        for try await inbox in client.device.inbox {
            return [
                "approvals": .array(inbox.approvals.map(describe)), "quietUntil": describe(inbox.quietUntil),
                "probationUntil": describe(inbox.probationUntil),
            ]
        }
        return .null
    },
    "answerApproval": { client, arguments in
        let approval = try await Held.shared.take(id(arguments), TrustedDevice.Approval.self)
        try await client.device.answer(approval, decision(arguments))
        return .null
    },
    "offerDevice": { client, arguments in
        let offer = try await client.device.offer(named: arguments["name"]?.string)
        return ["qrText": .string(offer.qrText), "checkCode": .string(offer.checkCode)]
    },
    "adoptDevice": { client, arguments in
        describe(
            try await client.device.adopt(arguments["qrText"]?.string ?? "") { offered in
                let digits = try await Questions.shared.ask(
                    "digits", ["name": offered.name.map(JSONValue.string) ?? .null])
                return digits.string ?? ""
            })
    },
    "possession": { client, arguments in
        let check = try await client.possession(arguments["authToken"]?.string ?? "")
        await Held.shared.keep(check, as: "check")
        return describe(await check.status)
    },
    "possessionSend": { _, arguments in
        let channel = arguments["channel"]?.string.flatMap(PossessionCheck.Channel.init) ?? .otp
        return describe(try await check().send(channel, to: arguments["phone"]?.string))
    },
    "possessionCheck": { _, arguments in describe(try await check().check(arguments["code"]?.string ?? "")) },
    "possessionWait": { _, _ in describe(try await check().wait()) },
    "possessionFinish": { _, arguments in describe(try await check().finish(url(arguments))) },
    "possessionCancel": { _, _ in
        try await check().cancel()
        return describe(await (try await check()).status)
    },
    "possessionStatus": { _, _ in describe(await (try await check()).status) },
    "signInWithPossession": { client, arguments in
        describe(try await client.signIn(with: check(), secondFactor: factor(arguments)))
    },
]

private func check() async throws -> PossessionCheck { try await Held.shared.take("check", PossessionCheck.self) }

private func describe(_ info: TrustedDevice.Info) -> JSONValue {
    [
        "id": .string(info.id), "name": info.name.map(JSONValue.string) ?? .null, "createdAt": describe(info.createdAt),
        "probationUntil": describe(info.probationUntil),
    ]
}

private func describe(_ approval: TrustedDevice.Approval) -> JSONValue {
    [
        "id": .string(approval.id), "event": .string(approval.event), "clientID": .string(approval.clientID),
        "bindingMessage": approval.bindingMessage.map(JSONValue.string) ?? .null,
        "needsNumber": .bool(approval.needsNumber),
    ]
}

private func describe(_ status: PossessionCheck.Status) -> JSONValue {
    [
        "id": .string(status.id), "step": .string(status.step.rawValue), "needsNumber": .bool(status.needsNumber),
        "channels": .array(status.channels.map { .string($0.rawValue) }),
        "sendsLeft": .number(Double(status.sendsLeft)),
        "triesLeft": status.triesLeft.map { .number(Double($0)) } ?? .null,
        "maskedNumber": status.maskedNumber.map(JSONValue.string) ?? .null,
        "matchNumber": status.matchNumber.map(JSONValue.string) ?? .null, "resendAt": describe(status.resendAt),
    ]
}
