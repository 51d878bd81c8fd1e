import Testing

@testable import Grants

@Suite("Address rules")
struct AddressRulesTests {
    private func rules(_ list: [(app: String?, domain: String, allows: Bool)]) -> AddressRules {
        AddressRules(list.map { .init(app: $0.app, domain: $0.domain, allows: $0.allows) })
    }

    @Test func `a domain is denied, exactly or with its sub-domains`() {
        let rules = rules([
            (nil, "evil.example", false), (nil, "*.shop.example", false), (nil, "ok.shop.example", true),
        ])
        #expect(!rules.accept("a@evil.example", app: nil) && !rules.accept("a@evil.example", app: "shop"))
        #expect(rules.accept("a@sub.evil.example", app: nil) == false, "there is a list of allowed domains")
        #expect(!rules.accept("a@x.shop.example", app: nil) && rules.accept("a@ok.shop.example", app: nil))
        let denials = self.rules([(nil, "evil.example", false), (nil, "*.shop.example", false)])
        #expect(denials.accept("a@sub.evil.example", app: nil) && denials.accept("a@shop.example", app: nil))
        #expect(!denials.accept("a@a.b.shop.example", app: nil) && denials.accept("a@myshop.example", app: nil))
    }

    @Test func `a list of allowed domains refuses all others`() {
        let rules = rules([(nil, "acme.example", true)])
        #expect(rules.accept("a@acme.example", app: nil) && !rules.accept("a@other.example", app: nil))
        #expect(AddressRules().accept("a@other.example", app: nil))
    }

    @Test func `an App's rules go before the realm's`() {
        let rules = rules([
            (nil, "acme.example", true), ("shop", "gmail.example", false), ("staff", "acme.example", false),
        ])
        #expect(rules.accept("a@acme.example", app: "shop"), "the realm's rule fits")
        #expect(rules.accept("a@other.example", app: "shop") && !rules.accept("a@gmail.example", app: "shop"))
        #expect(!rules.accept("a@acme.example", app: "staff") && !rules.accept("a@other.example", app: "third"))
    }
}
