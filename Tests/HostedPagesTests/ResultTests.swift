import Testing
import Texts

@testable import HostedPages

@Suite("Results of links")
struct ResultTests {
    @Test(arguments: LinkResult.allCases.map(\.rawValue) + UndoResult.allCases.map(\.rawValue))
    func `every result has a title and a text`(_ result: String) throws {
        let texts = try TextCatalogue().texts(in: .english)
        for key in ["done-\(result)-title", "done-\(result)"] {
            // A key that is not there is its own text.
            #expect(texts[key] != key && !texts[key].isEmpty, "\(key)")
        }
    }
}
