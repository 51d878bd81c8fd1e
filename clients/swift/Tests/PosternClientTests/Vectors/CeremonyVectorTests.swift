import Foundation
import Testing

@testable import PosternClient

/// Passkeys of docs/vectors, and what tells that the runners compare.
@Suite("The library and the vectors")
struct CeremonyVectorTests {
    @Test("Options and credentials of passkeys pass unchanged", arguments: VectorFile.ceremonies.cases)
    func passes(_ vector: VectorCase) async throws {
        let (options, credential) = (
            try #require(vector.members["options"]), try #require(vector.members["credential"])
        )
        let (world, person) = (World(), Person(credential.data))
        if vector.members["do"] == "create" {
            let client = try await world.signedIn()
            await world.server.next(
                .answer(200, ["ceremonyId": "one", "options": options]), at: "/connect/passkey/enroll/begin")
            await world.server.next(.answer(200, ["Id": "passkey"]), at: "/connect/passkey/enroll")
            _ = try await client.account.addPasskey(with: person)
            #expect(await world.requests("/connect/passkey/enroll").map { $0.json?["attestation"] } == [credential])
        } else {
            let client = try world.client()
            await world.server.next(
                .answer(200, ["ceremonyId": "one", "options": options]), at: "/connect/passkey/begin")
            await world.opens()
            _ = try await client.signIn(with: person)
            let sent = await world.requests("/connect/token").map { $0.form["assertion"] }
            #expect(sent.map { $0.flatMap { JSONValue(Data($0.utf8)) } } == [credential])
        }
        #expect(await person.asked == [options])
    }

    /// What AuthenticationServices takes, and what it gives.
    @Test("Apple's dialog gets what the options say", arguments: VectorFile.ceremonies.cases)
    func reads(_ vector: VectorCase) throws {
        let (options, isNew) = (try #require(vector.members["options"]), vector.members["do"] == "create")
        let read = try #require(isNew ? PasskeyOptions(creation: options.data) : PasskeyOptions(request: options.data))
        let listed = options[isNew ? "excludeCredentials" : "allowCredentials"]?.array ?? []
        #expect(.string(Base64URL.encode(read.challenge)) == options["challenge"])
        #expect(.string(read.rpID) == VectorFile.ceremonies.members["rpId"] && read.verification == "required")
        #expect(read.credentials.map { .string(Base64URL.encode($0)) } == listed.map { $0["id"] ?? .null })
        #expect(read.user.map { .string(Base64URL.encode($0.id)) } == options["user"]?["id"])
    }

    @Test(
        "What Apple's dialog gives becomes the document",
        arguments: VectorFile.ceremonies.cases.filter {
            $0.members["answer"] == "accept" && !$0.name.hasSuffix("unknown members")
        })
    func writes(_ vector: VectorCase) throws {
        let credential = try #require(vector.members["credential"])
        let response = credential["response"]
        func bytes(_ name: String) throws -> Data {
            let text = (response?[name] ?? credential[name])?.string
            return try #require(text.flatMap { Base64URL.decode($0) })
        }
        let (id, clientData) = (try bytes("id"), try bytes("clientDataJSON"))
        let made =
            vector.members["do"] == "create"
            ? PasskeyDocument.registration(id: id, clientData: clientData, attestation: try bytes("attestationObject"))
            : PasskeyDocument.assertion(
                id: id, clientData: clientData, authenticatorData: try bytes("authenticatorData"),
                signature: try bytes("signature"), user: try bytes("userHandle"))
        #expect(JSONValue(made) == credential)
    }

    // MARK: Altered cases are red

    @Test func `an altered case of any file is red`() async throws {
        let other = JSONValue.string("other")
        let spoiled = try altered(.proofs, "a token request", ["expect", "payload", "htm"], to: other)
        await withKnownIssue { try await VectorTests().makesProofs(spoiled) }
        let link = try altered(.links, "a magic link", ["is", "link", "token"], to: other)
        withKnownIssue { try VectorTests().readsLinks(link) }
        let challenge = try #require(VectorFile.challenges.cases.first { $0.members["is"]?["error"]?.string != nil })
        let changed = VectorCase(members: challenge.members.setting(["is", "error"], to: other))
        withKnownIssue { try VectorTests().readsChallenges(changed) }
        let refused = try #require(VectorFile.errors.cases.first { $0.members["class"] == "sign_in" })
        let patient = VectorCase(members: refused.members.setting(["class"], to: "retry_after"))
        withKnownIssue { try VectorTests().classifiesErrors(patient) }
        let ceremony = try altered(.ceremonies, "get: ES256", ["credential", "type"], to: other)
        withKnownIssue { try writes(ceremony) }
    }

    @Test func `an altered sign-in is red, and named`() async throws {
        let vector = try #require(
            VectorFile.signIn.cases.first { $0.members["steps"]?.array?.contains { $0["user"] != nil } == true })
        let steps = vector.members["steps"]?.array?.map { $0["user"] == nil ? $0 : $0.setting(["user"], to: "nobody") }
        let changed = VectorCase(members: vector.members.setting(["steps"], to: .array(steps ?? [])))
        let error = await #expect(throws: VectorDifference.self) { try await VectorStage(.signIn, changed).play() }
        #expect(error?.description.hasPrefix("\(vector.name): step") == true)
    }

    private func altered(
        _ file: VectorFile, _ name: String, _ path: [String], to value: JSONValue
    ) throws -> VectorCase {
        let vector = try #require(file.cases.first { $0.name == name })
        return VectorCase(members: vector.members.setting(path, to: value))
    }
}

extension JSONValue {
    /// With another value at a path of members.
    fileprivate func setting(_ path: [String], to value: JSONValue) -> JSONValue {
        guard let name = path.first, var members = object else { return value }
        members[name] = (members[name] ?? .null).setting(Array(path.dropFirst()), to: value)
        return .object(members)
    }
}
