import Foundation
import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// State, tokens, calls of APIs, signing out.
let tokenCommands: [String: Command] = [
    "state": { client, _ in describe(await client.state) },
    "adopt": { client, arguments in
        describe(
            try await client.adopt(
                refreshToken: arguments["refreshToken"]?.string ?? "", idToken: arguments["idToken"]?.string))
    },
    "accessToken": { client, arguments in describe(try await client.accessToken(for: audience(arguments))) },
    "setClock": { _, arguments in
        DeviceClock.shared.set(ahead: arguments["ahead"]?.number ?? 0)
        return .null
    },
    "dieAtWrite": { _, arguments in
        StoreWatch.shared.die(after: arguments["after"]?.integer ?? 0)
        return .null
    },
    "stopAtSend": { _, _ in
        Freezer.shared.arm()
        return .null
    },
    "soak": { client, arguments in try await soak(client, count: arguments["count"]?.integer ?? 0) },
    "send": { client, arguments in
        let (data, response) = try await client.send(request(arguments), for: audience(arguments))
        return [
            "status": .number(Double(response.statusCode)), "body": .string(String(decoding: data, as: UTF8.self)),
        ]
    },
    "authorized": { client, arguments in
        let request = try await client.authorized(request(arguments), for: audience(arguments))
        return .object((request.allHTTPHeaderFields ?? [:]).mapValues(JSONValue.string))
    },
    "signOut": { client, arguments in
        switch arguments["scope"]?.string {
        case "everywhere": try await client.signOut(.everywhere)
        case "forgettingThisDevice": try await client.signOut(.forgettingThisDevice)
        default: try await client.signOut()
        }
        return .null
    },
]

/// `"audience"`: `"account"`, an array of scopes of an API, or nothing.
private func audience(_ arguments: JSONValue) -> Audience {
    if let scopes = arguments["audience"]?.strings {
        return .api(scopes: scopes, resource: arguments["resource"]?.string.flatMap(URL.init(string:)))
    }
    return arguments["audience"]?.string == "account" ? .account : .default
}

private func request(_ arguments: JSONValue) throws -> URLRequest {
    guard let url = arguments["url"]?.string.flatMap(URL.init(string:)) else { throw PosternError.misuse("no url") }
    var request = URLRequest(url: url)
    request.httpMethod = arguments["method"]?.string ?? "GET"
    request.httpBody = arguments["body"]?.string.map { Data($0.utf8) }
    for (name, value) in arguments["headers"]?.object ?? [:] {
        request.setValue(value.string, forHTTPHeaderField: name)
    }
    return request
}

/// Asks for an access token again and again, over everything that is no decision.
/// - Returns: how often each thing happened; `unstored` counts tokens that the store had not had.
private func soak(_ client: PosternClient, count: Int) async throws -> JSONValue {
    var (done, unavailable, unstored) = (0, 0, 0)
    while done < count {
        do {
            let token = try await client.accessToken()
            done += 1
            if !StoreWatch.shared.has(token.value) { unstored += 1 }
        } catch PosternError.unavailable {
            unavailable += 1
        }
    }
    return [
        "done": .number(Double(done)), "unavailable": .number(Double(unavailable)),
        "unstored": .number(Double(unstored)),
    ]
}
