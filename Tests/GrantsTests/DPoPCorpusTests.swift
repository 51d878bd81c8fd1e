import DPoPFuzzTargets
import Foundation
import Testing

@Suite("Fuzz corpora of proofs")
struct DPoPCorpusTests {
    /// `Fuzz/Corpus/<target>/`, beside the package manifest.
    private static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz/Corpus")

    /// Seeds that hold.
    private static let good = ["seed-es256", "seed-plain", "seed-nonce", "seed-full"]

    @Test(arguments: DPoPFuzzTarget.allCases)
    func `every input of a corpus is handled`(_ target: DPoPFuzzTarget) throws {
        let directory = Self.directory.appendingPathComponent(target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let bytes = Array(try Data(contentsOf: file))
            #expect(target.run(bytes) == nil, "\(file.lastPathComponent)")
            if Self.good.contains(file.lastPathComponent) { #expect(target.accepts(bytes)) }
        }
    }

    /// Writes the seeds anew: `POSTERN_WRITE_CORPUS=1 swift test --filter DPoPCorpusTests`.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["POSTERN_WRITE_CORPUS"] != nil))
    func `seeds are written`() throws {
        func write(_ target: DPoPFuzzTarget, _ name: String, _ text: String) throws {
            let directory = Self.directory.appendingPathComponent(target.rawValue)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: directory.appendingPathComponent("seed-\(name)"))
        }
        try write(.dpopProof, "es256", try DPoPFuzzScene.proof())
        // Of long ago, and so refused: by its time, after its signature.
        for (name, key) in [("eddsa", ProofKey.edDSA), ("rs256", .rs256), ("ps256", .ps256)] {
            var draft = ProofDraft(key, iat: 1)
            draft.set(\.payload, "htu", quoted(DPoPFuzzScene.url))
            try write(.dpopProof, name, try draft.text())
        }
        let url = DPoPFuzzScene.url
        let payloads = [
            "plain": #"{"jti":"1","htm":"POST","htu":"\#(url)","iat":1800000000}"#,
            "nonce": #"{"jti":"1","htm":"POST","htu":"\#(url)","iat":1,"nonce":"\#(DPoPFuzzScene.nonce())"}"#,
            "full":
                #"{"jti":"\u00e9","htm":"POST","htu":"HTTPS://fuzz.example:443/x/../connect/%74oken?a#b","iat":1.8e9,"exp":1800000060,"nbf":1799999999.5,"ath":"x","m":[null,{"a":true}]}"#,
        ]
        for (name, payload) in payloads { try write(.dpopClaims, name, DPoPFuzzScene.header() + "\0" + payload) }
    }
}
