@testable import Grants
import Persistence
import Testing

@Suite("Codes and links of proofs of a number")
struct PossessionCodeTests {
    private let realm: Realm

    init() throws { realm = try Realm.fixture() }

    private func link(of code: PossessionCode) -> String? {
        if case .magicLink(let link, _, _) = code.payload.content { link } else { nil }
    }

    @Test(arguments: [false, true])
    func `a hundred thousand links are all different, of 132 bits, and kept as digests`(_ asksNumber: Bool) throws {
        let prefix = PossessionLink.prefix(of: realm)
        var tokens = Set<String>()
        var places = [Set<Character>](repeating: [], count: PossessionLink.length)
        for number in 0..<100_000 {
            let code = PossessionCode(linkAskingNumber: asksNumber, in: nil, realm: realm)
            let link = try #require(self.link(of: code))
            try #require(link.hasPrefix(prefix))
            let token = String(link.dropFirst(prefix.count))
            tokens.insert(token)
            if number < 5_000 {
                for (place, character) in token.prefix(places.count).enumerated() { places[place].insert(character) }
            }
            guard code.linkHash == PossessionLink.hash(token), code.keyed == nil, token.count == PossessionLink.length,
                PossessionLink.asksNumber(token) == asksNumber, (code.match == nil) == !asksNumber
            else {
                Issue.record("a link that is not as it should be: \(token)")
                return
            }
        }
        #expect(tokens.count == 100_000)
        // The first character tells the pages apart; 22 of the others are any of 64, the last of the 18 bytes is cut.
        #expect(places[0].count == 1)
        #expect(places[1..<23].allSatisfy { $0.count == 64 })
    }
}
