import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// docs/vectors: what a client in any language does.
@Suite("The library does what the vectors say")
struct VectorTests {
    @Test("for its tokens", .serialized, arguments: VectorFile.refresh.cases)
    func refreshes(_ vector: VectorCase) async throws {
        try await VectorStage(.refresh, vector).play()
    }

    @Test("for its sign-ins", .serialized, arguments: VectorFile.signIn.cases)
    func signsIn(_ vector: VectorCase) async throws {
        try await VectorStage(.signIn, vector).play()
    }

    @Test("The files are there")
    func filesAreThere() {
        #expect(VectorFile.refresh.cases.count >= 50 && VectorFile.signIn.cases.count >= 30)
        #expect(VectorFile.links.cases.count >= 30 && VectorFile.challenges.cases.count >= 30)
        #expect(VectorFile.proofs.cases.count >= 80 && VectorFile.errors.cases.count >= 200)
        #expect(VectorFile.ceremonies.cases.count >= 12)
    }

    @Test("An altered case is red, and named")
    func alteredCaseIsRed() async throws {
        let vector = try #require(VectorFile.refresh.cases.first { $0.name == "59 of 900 s are left: refreshed" })
        var members = try #require(vector.members.object)
        let steps = try #require(members["steps"]?.array)
        members["steps"] = .array(
            steps.map { $0["token"] == nil ? $0 : ["result": "a", "token": "vector-access-99"] })
        let altered = VectorCase(members: .object(members))
        do {
            try await VectorStage(.refresh, altered).play()
            Issue.record("the altered case was green")
        } catch {
            #expect("\(error)".hasPrefix("59 of 900 s are left: refreshed: step"))
        }
    }

    // MARK: Proofs

    @Test(
        "for the proofs that it makes", arguments: VectorFile.proofs.cases.filter { $0.members["do"]?.string == "make" }
    )
    func makesProofs(_ vector: VectorCase) async throws {
        let (members, keys) = (vector.members, VectorFile.proofs.members["keys"])
        let pair = try #require(keys?[members["key"]?.string ?? ""])
        let secret = try #require(pair["private"]?["d"]?.string.flatMap(Base64URL.decode))
        let key = try SoftwareKey(secret)
        #expect(key.thumbprint == pair["thumbprint"]?.string)
        let (method, target) = (try #require(members["method"]?.string), try #require(members["url"]?.string))
        let time = try #require(members["time"]?.date)
        let proof = try await Proof.make(
            key, method: method, url: target, token: members["token"]?.string, nonce: members["nonce"]?.string, at: time
        )
        let parts = proof.split(separator: ".").map(String.init)
        let expected = try #require(members["expect"])
        try match(expected["header"] ?? .null, Base64URL.decode(parts[0]).flatMap { JSONValue($0) }, "header")
        var payload = try #require(expected["payload"]?.object)
        payload["jti"] = ["$": "string"]
        try match(.object(payload), Base64URL.decode(parts[1]).flatMap { JSONValue($0) }, "payload")
        #expect(Base64URL.decode(parts[2])?.count == 64)
    }

    // MARK: Answers and URLs

    @Test("about answers", arguments: VectorFile.errors.cases)
    func classifiesErrors(_ vector: VectorCase) throws {
        let members = vector.members
        let (status, grant) = (members["status"]?.integer ?? 0, members["grant"]?.string)
        // Pages and redirects are for browsers; `/v3` and Cotter's wire for backends and other clients.
        let endpoints = members["endpoints"]?.strings ?? []
        guard status != 303, members["body"]?["page"] == nil,
            !endpoints.contains(where: { $0.hasPrefix("/v3") || $0.contains("/api/v0") })
        else { return }
        var body = members["body"]?.object ?? [:]
        if let text = members["text"]?.string {
            body[body["title"] == nil ? "error_description" : "detail"] = .string(text)
        }
        var fields: [String: String] = status == 429 ? ["Retry-After": "7"] : [:]
        if let text = members["text"]?.string, text.hasPrefix("WWW-Authenticate: ") {
            fields["WWW-Authenticate"] = String(text.dropFirst(18))
        }
        let url = try #require(URL(string: "https://auth.vectors.example/"))
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields))
        let answer = Answer(body.isEmpty ? Data() : JSONValue.object(body).data, response)
        let error = PosternError(answer, of: step(of: grant))
        #expect(
            answer.isOf(members["class"]?.string ?? "", error),
            "\(vector.name): \(members["class"]?.string ?? ""), \(error)")
        if members["ends_session"]?.bool != true, case .signedOut = error { Issue.record("\(vector.name): signs out") }
    }

    private func step(of grant: String?) -> Step {
        switch grant {
        case "urn:cocoar:otp": .code
        case "urn:cocoar:magic", "urn:openid:params:grant-type:ciba": .poll
        case "refresh_token": .refresh
        default: .other
        }
    }

    @Test("about links", arguments: VectorFile.links.cases)
    func readsLinks(_ vector: VectorCase) throws {
        let (client, expected) = (VectorFile.links.members["client"], vector.members["is"] ?? .null)
        func url(_ name: String) throws -> URL { try #require(URL(string: client?[name]?.string ?? "")) }
        guard let given = URL(string: vector.members["url"]?.string ?? "") else {
            #expect(expected == .null)
            return
        }
        let link = MagicLink(given, of: [Origin(try url("origin")), Origin(try url("issuer"))].compactMap { $0 })
        #expect(link?.userID == expected["link"]?["userId"]?.string)
        #expect(link?.token == expected["link"]?["token"]?.string)
        guard let page = expected["page"] else { return }
        let request = PageRequest(redirect: try url("redirectURI"))
        let text = given.absoluteString.replacingOccurrences(of: "vector-state-1", with: request.state)
        let returned = try #require(URL(string: text))
        do {
            let code = try request.code(in: returned, issuer: url("issuer").absoluteString)
            #expect(code == page["code"]?.string)
        } catch {
            let denied: PosternError? = page["error"] == nil ? nil : .denied
            #expect(error as? PosternError == denied ?? .invalidResponse, "\(vector.name)")
        }
    }

    @Test("about challenges", arguments: VectorFile.challenges.cases)
    func readsChallenges(_ vector: VectorCase) throws {
        var fields: [String: String] = [:]
        for name in ["WWW-Authenticate", "DPoP-Nonce"] {
            if let values = vector.members[name]?.strings, !values.isEmpty {
                fields[name] = values.joined(separator: ", ")
            }
        }
        let url = try #require(URL(string: "https://auth.vectors.example/"))
        let response = try #require(HTTPURLResponse(url: url, statusCode: 401, httpVersion: nil, headerFields: fields))
        let (answer, expected) = (Answer(Data(), response), vector.members["is"])
        #expect(answer.nonce == expected?["nonce"]?.string, "\(vector.name)")
        #expect(answer.authenticateError == expected?["error"]?.string, "\(vector.name)")
        if let challenge = StepUpChallenge(response) {
            #expect(challenge.levels == expected?["levels"]?.strings ?? [], "\(vector.name)")
            #expect(challenge.maxAge == expected?["age"]?.integer, "\(vector.name)")
        } else {
            #expect(expected?["error"]?.string != "insufficient_user_authentication", "\(vector.name)")
        }
    }
}

extension Answer {
    /// Whether an error is of a class of errors.json.
    fileprivate func isOf(_ name: String, _ error: PosternError) -> Bool {
        switch (name, error) {
        case ("retry", .unavailable), ("retry_after", .rateLimited), ("sign_in", .signedOut),
            ("step_up", .stepUpNeeded),
            ("names", .namesNeeded), ("second_factor", .secondFactorNeeded), ("second_factor", .secondFactorWrong),
            ("again", .wrongCode), ("again", .denied), ("again", .expired):
            true
        // The caller polls on.
        case ("retry", .refused("authorization_pending", _, _)), ("retry", .refused("slow_down", _, _)),
            ("retry", .refused("resend_too_soon", _, _)):
            true
        case ("again", .refused), ("step_up", .refused("unmet_authentication_requirements", _, _)), ("fix", .refused):
            true
        // A fault of settings, which a client cannot tell from one that passes.
        case ("fix", .unavailable): status == 503
        default: false
        }
    }
}
