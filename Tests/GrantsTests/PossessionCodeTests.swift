@testable import Grants
import Persistence
import Testing

@Suite("Codes and links of proofs of a number")
struct PossessionCodeTests {
    private let realm: Realm

    init() throws { realm = try Realm.fixture() }

    private func facts(_ kind: String) throws -> PossessionFacts {
        try PossessionFacts(
            """
            {"id": "\(UUIDValue.random())", "auth_id": "\(UUIDValue.random())", "kind": "\(kind)", "state": "open",
             "is_opened": true, "expires_in": 900, "sends_left": 3, "cooldown": 0, "cooldown_total": 0,
             "tries_left": 1, "has_code": false, "numbers": 0, "is_test": false, "target": "https://app.example/done"}
            """)
    }

    private func link(of code: PossessionCode) -> String? {
        if case .magicLink(let link, _, _) = code.payload.content { link } else { nil }
    }

    @Test(arguments: ["mobile", "desktop"])
    func `a hundred thousand links are all different, of 132 bits, and kept as digests`(_ kind: String) throws {
        let facts = try facts(kind)
        let prefix = PossessionLink.prefix(of: realm)
        var tokens = Set<String>()
        var places = [Set<Character>](repeating: [], count: PossessionLink.length)
        for number in 0..<100_000 {
            let code = PossessionCode(linkTo: "+4366412345678", facts, realm: realm)
            let link = try #require(self.link(of: code))
            try #require(link.hasPrefix(prefix))
            let token = String(link.dropFirst(prefix.count))
            tokens.insert(token)
            if number < 5_000 {
                for (place, character) in token.prefix(places.count).enumerated() { places[place].insert(character) }
            }
            guard code.linkHash == PossessionLink.hash(token), code.keyed == nil, token.count == PossessionLink.length,
                PossessionLink.asksNumber(token) == (kind == "desktop"), (code.match == nil) == (kind == "mobile")
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
