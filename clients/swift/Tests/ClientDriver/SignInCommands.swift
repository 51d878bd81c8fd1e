import Foundation
import PosternClient

/// Everything that signs in.
let signInCommands: [String: Command] = [
    "answer": { _, arguments in
        await Questions.shared.answer(Int(arguments["number"]?.number ?? 0), arguments["value"])
        return .null
    },
    "appInfo": { client, _ in
        let info = try await client.appInfo()
        return [
            "displayName": .string(info.displayName), "nativeGrants": .bool(info.nativeGrants),
            "registration": .string(info.registration.rawValue), "rpID": info.rpID.map(JSONValue.string) ?? .null,
            "firstName": .string(info.firstName.rawValue), "lastName": .string(info.lastName.rawValue),
        ]
    },
    "requestCode": { client, arguments in
        try described(try await client.requestCode(to: address(arguments), names: names(arguments)))
    },
    "register": { client, arguments in
        try described(try await client.register(address(arguments), names: names(arguments)))
    },
    "resendCode": { client, arguments in
        let code: CodeRequest = try request(arguments)
        return try described(try await client.resend(code))
    },
    "signIn": { client, arguments in
        describe(
            try await client.signIn(
                code: arguments["code"]?.string ?? "", for: request(arguments), secondFactor: factor(arguments)))
    },
    "requestLink": { client, arguments in
        try described(try await client.requestLink(to: address(arguments), names: names(arguments)))
    },
    "requestApproval": { client, arguments in
        try described(try await client.requestApproval(of: arguments["hint"]?.string ?? ""))
    },
    "requestDeviceSignIn": { client, _ in try described(try await client.requestDeviceSignIn()) },
    "resendLink": { client, arguments in
        let pending: PendingSignIn = try request(arguments)
        return try described(try await client.resend(pending))
    },
    "wait": { client, arguments in
        describe(try await client.wait(for: request(arguments), secondFactor: factor(arguments)))
    },
    "openLink": { client, arguments in
        try await client.open(url(arguments), secondFactor: factor(arguments)).map(describe) ?? .null
    },
    "pending": { client, _ in
        .array(
            try await client.pending.map {
                switch $0 {
                case .code(let request): ["code": try described(request)]
                case .signIn(let pending): ["signIn": try described(pending)]
                }
            })
    },
    "forget": { client, arguments in
        if let code: CodeRequest = try? request(arguments) {
            try await client.forget(.code(code))
        } else {
            try await client.forget(.signIn(request(arguments)))
        }
        return .null
    },
    "signInWithPasskey": { client, _ in describe(try await client.signIn(with: AskingDialog())) },
    "signInOnPages": { client, arguments in
        var options = PageOptions()
        options.loginHint = arguments["loginHint"]?.string
        options.prompt = arguments["prompt"]?.string
        options.maxAge = arguments["maxAge"]?.number.map { Int($0) }
        options.levels = arguments["levels"]?.strings ?? []
        options.locales = arguments["locales"]?.strings ?? []
        let browser: any PageBrowser = arguments["loopback"]?.bool == true ? loopbackBrowser() : AskingBrowser()
        return describe(try await client.signIn(onPages: browser, options: options))
    },
    "signInAsTrustedDevice": { client, arguments in
        describe(try await client.signInAsTrustedDevice(secondFactor: factor(arguments)))
    },
    "beginProvider": { client, arguments in
        try described(try await client.beginProvider(arguments["provider"]?.string ?? ""))
    },
    "signInWithProvider": { client, arguments in
        describe(
            try await client.signIn(proof(arguments), for: request(arguments), secondFactor: factor(arguments)))
    },
    "stepUp": { client, arguments in
        let challenge = challenge(arguments)
        let method: StepUpMethod =
            switch arguments["by"]?.string {
            case "code": .code(arguments["code"]?.string ?? "", for: try request(arguments), try factor(arguments))
            case "pages": .pages(AskingBrowser())
            default: .passkey(AskingDialog())
            }
        return describe(try await client.stepUp(challenge, by: method))
    },
]

/// A value that apps may keep, as JSON.
func described(_ value: some Encodable) throws -> JSONValue {
    JSONValue(try JSONEncoder().encode(value)) ?? .null
}

/// `"request"`: a value that an earlier command gave.
func request<Request: Decodable>(_ arguments: JSONValue) throws -> Request {
    try JSONDecoder().decode(Request.self, from: (arguments["request"] ?? .null).data)
}

/// `"email"`, or `"phone"` and `"channel"`.
func address(_ arguments: JSONValue) -> Address {
    if let number = arguments["phone"]?.string {
        return .phone(number, channel: arguments["channel"]?.string.flatMap(PhoneChannel.init) ?? .sms)
    }
    return .email(arguments["email"]?.string ?? "")
}

/// `"totp"` or `"recoveryCode"`.
func factor(_ arguments: JSONValue) throws -> SecondFactor? {
    arguments["totp"]?.string.map(SecondFactor.totp) ?? arguments["recoveryCode"]?.string.map(SecondFactor.recoveryCode)
}

func url(_ arguments: JSONValue) throws -> URL {
    guard let url = arguments["url"]?.string.flatMap(URL.init(string:)) else { throw PosternError.misuse("no url") }
    return url
}

func proof(_ arguments: JSONValue) -> ProviderProof {
    ProviderProof(
        identityToken: arguments["identityToken"]?.string ?? "",
        authorizationCode: arguments["authorizationCode"]?.string, names: names(arguments))
}

private func names(_ arguments: JSONValue) -> Names? {
    let names = Names(first: arguments["first"]?.string, last: arguments["last"]?.string)
    return names == Names() ? nil : names
}

/// `"levels"` and `"maxAge"`, as an API would say them.
private func challenge(_ arguments: JSONValue) -> StepUpChallenge {
    StepUpChallenge(levels: arguments["levels"]?.strings ?? [], maxAge: arguments["maxAge"]?.number.map { Int($0) })
}
