import Foundation
import Testing

@testable import PosternClient

@Suite("The document in the Keychain")
struct KeychainTests {
    let items = FakeItems()
    var document: KeychainDocument { KeychainDocument(items: items, account: "a") }

    @Test func `before the first unlock it is locked`() {
        items.reading = -25308
        #expect(throws: StoreLocked.self) { try document.read() }
    }

    @Test func `"not found" is not believed while nothing can be added`() {
        items.adding = -25308
        #expect(throws: StoreLocked.self) { try document.read() }
    }

    @Test func `"not found" is believed once an item could be added, which is gone afterwards`() throws {
        #expect(try document.read() == nil)
        #expect(items.all.isEmpty)
    }

    @Test func `another status is a mistake that names it`() throws {
        items.reading = -34018
        let error = #expect(throws: PosternError.self) { try document.read() }
        guard case .misuse(let text)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(text.contains("-34018"))
    }

    @Test func `an item is changed in place, and erased`() throws {
        try document.write(Data("one".utf8))
        try document.write(Data("two".utf8))
        #expect(items.calls == ["update a", "add a", "update a"])
        #expect(try document.read() == Data("two".utf8))
        try document.write(nil)
        try document.write(nil)
        #expect(items.all.isEmpty)
    }

    @Test func `an item that another process added meanwhile is changed`() throws {
        items.adding = -25299
        items.all["a"] = Data("theirs".utf8)
        items.updatesMissing = 1
        try document.write(Data("ours".utf8))
        #expect(try document.read() == Data("ours".utf8))
    }

    @Test func `a damaged document is set aside`() throws {
        try document.write(Data("x".utf8))
        try document.setAside(Data("y".utf8))
        #expect(items.all == ["a": Data("x".utf8)])
        try document.setAside(Data("x".utf8))
        #expect(items.all == ["a.damaged": Data("x".utf8)])
        try document.forgetAside()
        #expect(items.all.isEmpty)
    }
}

/// Items of a Keychain that answers as a test says.
final class FakeItems: KeychainItems, @unchecked Sendable {
    var all: [String: Data] = [:]
    var calls: [String] = []
    var reading: Int32?
    var adding: Int32?
    /// How many updates find nothing though the item is there.
    var updatesMissing = 0

    func read(_ account: String) -> (status: Int32, data: Data?) {
        if let reading { return (reading, nil) }
        return all[account].map { (0, $0) } ?? (-25300, nil)
    }

    func add(_ account: String, _ data: Data) -> Int32 {
        calls.append("add \(account)")
        if let adding { return adding }
        guard all[account] == nil else { return -25299 }
        all[account] = data
        return 0
    }

    func update(_ account: String, _ data: Data) -> Int32 {
        calls.append("update \(account)")
        guard all[account] != nil, updatesMissing == 0 else {
            updatesMissing = max(0, updatesMissing - 1)
            return -25300
        }
        all[account] = data
        return 0
    }

    func delete(_ account: String) -> Int32 { all.removeValue(forKey: account) == nil ? -25300 : 0 }
}
