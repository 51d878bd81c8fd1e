import Foundation
import Testing

@Suite("Composition")
struct CompositionTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources/TokenEndpoint/Application")

    private static func source(_ name: String) throws -> String {
        try String(contentsOf: folder.appending(path: name), encoding: .utf8)
    }

    @Test func `the composition root names no grant, endpoint, store or service of a capability`() throws {
        let root = try Self.source("Server+compose.swift")
        let parts = root.matches(of: /\b[A-Z]\w*(?:Grant|Factor|Routes|Store|Worker|Service)\(/).map { "\($0.output)" }
        #expect(parts == ["TokenService("])
    }

    @Test func `every module is in the list of modules`() throws {
        let root = try Self.source("Server+compose.swift")
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path(percentEncoded: false))
            .compactMap { $0.wholeMatch(of: /(\w+Module)\.swift/).map { "\($0.1)" } }
        #expect(names.count >= 10)
        for name in names { #expect(root.contains("\(name)(shared"), "\(name)") }
    }
}
