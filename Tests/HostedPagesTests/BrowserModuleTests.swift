import Foundation
import Persistence
import Testing

/// What postern.js repeats of the server's rules.
@Suite("The browser's module")
struct BrowserModuleTests {
    private static let module = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "clients/js/postern.js")

    @Test func `its states are those that end the wait of an app, but a link that leads back to the app`() throws {
        let text = try String(contentsOf: Self.module, encoding: .utf8)
        let list = try #require(text.firstMatch(of: /const isOver = state => \[([^\]]*)\]/)?.1)
        let states = list.matches(of: /"(\w+)"/).map { PossessionState(rawValue: "\($0.1)") }
        let wanted = PossessionState.allCases.filter { $0.endsWait && $0 != .linked }
        #expect(states.count == wanted.count)
        #expect(Set(states) == Set(wanted.map(Optional.some)))
    }

    @Test func `each word that it compares a state with is a state`() throws {
        let text = try String(contentsOf: Self.module, encoding: .utf8)
        let words = text.matches(of: /\bstate [!=]== "(\w+)"/).map { "\($0.1)" }
        #expect(!words.isEmpty)
        for word in words { #expect(PossessionState(rawValue: word) != nil, "\(word)") }
    }
}
