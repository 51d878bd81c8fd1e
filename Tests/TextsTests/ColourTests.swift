import Testing

@testable import Texts

@Suite("Colours of a brand")
struct ColourTests {
    @Test(arguments: ["#000000", "#ffffff", "#777777", "#1f5fbf", "#84b4ff", "#ff0000", "#00ff00", "#959595"])
    func `the text on any colour can be read`(_ text: String) throws {
        let colour = try #require(Colour(text))
        #expect(colour.text == text)
        #expect(colour.contrast(to: colour.textColour) >= 4.5)
        #expect(colour.readable(on: .darkCard).contrast(to: .darkCard) >= 4.5)
    }

    @Test(arguments: ["", "#fff", "red", "#gggggg", "1f5fbf0"])
    func `nothing else is a colour`(_ text: String) {
        #expect(Colour(text) == nil)
    }
}
