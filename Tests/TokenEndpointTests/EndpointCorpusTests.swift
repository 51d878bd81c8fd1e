import EndpointFuzzTargets
import Foundation
import Testing

@Suite("Fuzz corpora of HTTP requests")
struct EndpointCorpusTests {
    /// `Fuzz/Corpus/<target>/`, beside the package manifest.
    private static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz/Corpus")

    @Test(arguments: EndpointFuzzTarget.allCases)
    func `every input of a corpus is handled`(_ target: EndpointFuzzTarget) throws {
        let directory = Self.directory.appendingPathComponent(target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            #expect(target.run(Array(try Data(contentsOf: file))) == nil, "\(file.lastPathComponent)")
        }
    }
}
