import Foundation
import Testing

@testable import PosternClient

@Suite("The store in a file")
struct FileStoreTests {
    @Test(arguments: [0o000, 0o022] as [mode_t])
    func `folder and file are the owner's alone, whatever the umask is`(mask: mode_t) async throws {
        let directory = try TemporaryDirectory()
        let former = umask(mask)
        defer { umask(former) }
        let store = FileStore(directory: directory.url.appendingPathComponent("deep/state"), name: "s")
        try await store.write(Data("x".utf8))
        #expect(directory.mode("deep/state") == 0o700 && directory.mode("deep/state/s") == 0o600)
        #expect(try await store.read() == Data("x".utf8))
        try await store.write(nil)
        #expect(try await store.read() == nil)
    }

    @Test(arguments: [0o640, 0o604, 0o620]) func `a file that others may read is refused`(mode: Int) async throws {
        let directory = try TemporaryDirectory()
        try directory.write("{}", "s", mode: mode)
        let error = await #expect(throws: PosternError.self) {
            try await FileStore(directory: directory.url, name: "s").read()
        }
        #expect(error == .misuse("\(directory.path("s")) has mode \(String(mode, radix: 8)): chmod 600 it"))
        #expect(directory.text("s") == "{}")
    }

    @Test func `a symbolic link and a folder that others may read are refused`() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("{}", "target")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path("s"), withDestinationPath: directory.path("target"))
        let store = FileStore(directory: directory.url, name: "s")
        let error = await #expect(throws: PosternError.self) { try await store.read() }
        #expect(error == .misuse("\(directory.path("s")) is a symbolic link; it must be a file"))
        try FileManager.default.createSymbolicLink(
            atPath: directory.path("s.lock"), withDestinationPath: directory.path("target"))
        await expect(.misuse("\(directory.path("s.lock")) is a symbolic link; it must be a file")) {
            try await store.exclusively {}
        }
        chmod(directory.url.path, 0o755)
        await #expect(throws: PosternError.self) { try await store.write(Data()) }
    }

    @Test(.enabled(if: geteuid() == 0)) func `a file and a folder of another user are refused`() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("{}", "s")
        chown(directory.path("s"), 1, 1)
        let store = FileStore(directory: directory.url, name: "s")
        await expect(.misuse("\(directory.path("s")) (mode 600) belongs to user 1, not to this one")) {
            try await store.read()
        }
        chown(directory.url.path, 1, 1)
        await expect(.misuse("\(directory.url.path) (mode 700) belongs to user 1, not to this one")) {
            try await store.write(Data())
        }
    }

    @Test func `a link to the folder and no file at all are well`() async throws {
        let directory = try TemporaryDirectory()
        let link = directory.url.appendingPathComponent("link")
        let folder = directory.url.appendingPathComponent("folder")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let store = FileStore(directory: link, name: "s")
        #expect(try await store.read() == nil)
        try await store.write(Data("x".utf8))
        #expect(try await store.read() == Data("x".utf8))
    }

    @Test(arguments: ["../s", "a/b", "", ".s"]) func `a name is a name`(name: String) async throws {
        let directory = try TemporaryDirectory()
        await #expect(throws: PosternError.self) { try await FileStore(directory: directory.url, name: name).read() }
    }

    @Test func `what a killed process left is removed, and what a living one has stays`() async throws {
        let directory = try TemporaryDirectory()
        // No process has a number this large.
        try directory.write("half", "s.4194305.7.new")
        try directory.write("other", "s.1.7.new")
        try await FileStore(directory: directory.url, name: "s").write(Data("x".utf8))
        #expect(directory.text("s.4194305.7.new") == nil && directory.text("s.1.7.new") == "other")
    }

    @Test func `a document that was changed meanwhile is not replaced`() async throws {
        let directory = try TemporaryDirectory()
        let store = FileStore(directory: directory.url, name: "s")
        #expect(try await store.write(Data("a".utf8), replacing: nil))
        #expect(try await store.write(Data("b".utf8), replacing: Data("x".utf8)) == false)
        #expect(try await store.write(Data("b".utf8), replacing: Data("a".utf8)))
        #expect(try await store.read() == Data("b".utf8))
    }

    @Test func `sixty changes at once are all there`() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        let clients = try (0..<4).map { _ in try world.client(FileStore(directory: directory.url, name: "s")) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask { try await clients[number % 4].change { $0.clockOffset += 1 } }
            }
            try await group.waitForAll()
        }
        #expect(try await clients[0].document().clockOffset == 60)
    }

    @Test func `one body runs after another, and other tasks go on`() async throws {
        let directory = try TemporaryDirectory()
        let store = FileStore(directory: directory.url, name: "s")
        let inside = Gate()
        let leave = Gate()
        let order = Order()
        let first = Task {
            try await store.exclusively {
                await inside.open()
                await leave.pass()
                await order.add(1)
            }
        }
        await inside.pass()
        let second = Task {
            try await FileStore(directory: directory.url, name: "s").exclusively { await order.add(2) }
        }
        await leave.open()
        try await first.value
        try await second.value
        #expect(await order.list == [1, 2])
    }

    @Test func `a write that fails changes nothing, and leaves nothing beside`() async throws {
        let directory = try TemporaryDirectory()
        // Nothing can take the place of a folder.
        try FileManager.default.createDirectory(atPath: directory.path("s"), withIntermediateDirectories: false)
        let store = FileStore(directory: directory.url, name: "s")
        await #expect(throws: POSIXError.self) { try await store.write(Data("new".utf8)) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["s"])
    }
}

actor Order {
    private(set) var list: [Int] = []
    func add(_ number: Int) { list.append(number) }
}
