import Foundation
import Testing

@testable import PosternClient

@Suite("Calls that overlap")
struct OverlapTests {
    let world = World()

    @Test func `signing out everywhere leaves who signed in meanwhile alone`() async throws {
        let client = try await world.signedIn()
        let (reached, until) = await world.server.hold(at: "/connect/sessions")
        let leaving = Task { try await client.signOut(.everywhere) }
        await reached.pass()
        try await world.signIn(client, family: "S", user: "nina")
        await until.open()
        try await leaving.value
        #expect(try await client.document().session?.user?.id == "nina")
    }

    @Test func `deleting an account leaves who signed in meanwhile alone`() async throws {
        let client = try await world.signedIn()
        let (reached, until) = await world.server.hold(at: "/connect/account")
        let leaving = Task { try await client.account.delete() }
        await reached.pass()
        try await world.signIn(client, family: "S", user: "nina")
        await until.open()
        try await leaving.value
        #expect(try await client.document().session?.user?.id == "nina")
    }

    @Test func `a step-up that ends after signing out opens no session`() async throws {
        let client = try await world.signedIn()
        await world.server.next(
            .answer(200, ["ceremonyId": "c", "options": ["challenge": "x"]]), at: "/connect/passkey/begin")
        await world.opens("S")
        let dialog = Leaver(client)
        await expect(.signedOut(.byUser)) {
            try await client.stepUp(StepUpChallenge(levels: [], maxAge: 60), by: .passkey(dialog))
        }
        await client.revoking?.value
        #expect(await client.state == .signedOut(.byUser))
        #expect(await world.server.revoked.sorted() == ["R.1", "S.1"])
    }

    @Test(.timeLimit(.minutes(1))) func `an adoption goes on when its caller is gone`() async throws {
        let client = try world.client()
        await world.server.add("R", FakeServer.Family(user: "mike"))
        let (reached, until) = await world.server.hold(at: "/connect/token")
        let adoption = Task { try await client.adopt(refreshToken: "R.1") }
        await reached.pass()
        adoption.cancel()
        await expect(.cancelled) { try await adoption.value }
        await until.open()
        for await state in client.states where state.isSignedIn { break }
        #expect(try await client.document().session?.refreshToken == "R.2")
    }

    @Test func `a device that is forgotten keeps no damaged document`() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(#"{"v":1,"key":"secret""#, "s")
        let client = try await world.signedIn(FileStore(directory: directory.url, name: "s"))
        #expect(directory.text("s.damaged") != nil)
        try await client.signOut()
        #expect(directory.text("s.damaged") != nil)
        try await client.signOut(.forgettingThisDevice)
        #expect(directory.text("s.damaged") == nil)
    }

    @Test func `a document that is good by now is not set aside`() async throws {
        let directory = try TemporaryDirectory()
        let store = FileStore(directory: directory.url, name: "s")
        let damaged = Data("{".utf8)
        try await store.write(damaged)
        try await store.write(Data("good".utf8))
        try await store.setAside(damaged)
        #expect(directory.text("s") == "good" && directory.text("s.damaged") == nil)
        try await store.setAside(Data("good".utf8))
        #expect(directory.text("s") == nil && directory.text("s.damaged") == "good")
    }

    @Test func `processes of one number in two containers do not write into each other's file`() async throws {
        let directory = try TemporaryDirectory()
        let file = PrivateFile(directory: directory.url.path, name: "s")
        let texts = ["a", "b"].map { Data(String(repeating: $0, count: 200_000).utf8) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for text in texts {
                group.addTask { for _ in 0..<50 { _ = try file.write(text) { true } } }
            }
            try await group.waitForAll()
        }
        #expect(try texts.contains(#require(try file.read())))
    }
}

/// The person signs out while the dialog is open, and then goes through with it.
private struct Leaver: PasskeyDialog {
    let client: PosternClient

    init(_ client: PosternClient) { self.client = client }

    func create(_ options: Data) async throws -> Data { throw DialogCancelled() }

    func get(_ options: Data, style: PasskeyStyle) async throws -> Data {
        try await client.signOut()
        return Data("{}".utf8)
    }
}
