import Foundation
import GrantsFuzzTargets
import Testing

@Suite("Fuzz corpora of callers' texts")
struct GrantsCorpusTests {
    /// `Fuzz/Corpus/<target>/`, beside the package manifest.
    private static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz/Corpus")

    @Test(arguments: GrantsFuzzTarget.allCases)
    func `every input of a corpus is handled, and every seed is accepted`(_ target: GrantsFuzzTarget) throws {
        let directory = Self.directory.appendingPathComponent(target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let bytes = Array(try Data(contentsOf: file))
            #expect(target.run(bytes) == nil, "\(file.lastPathComponent)")
            if file.lastPathComponent.hasPrefix("seed-") { #expect(target.accepts(bytes), "\(file.lastPathComponent)") }
        }
    }
}
