@testable import Grants
import Testing

@Suite("Authentication contexts")
struct AuthenticationContextTests {
    @Test(arguments: [
        (["otp"], "urn:postern:acr:1"), (["otp", "sms"], "urn:postern:acr:1"), (["otp", "tel"], "urn:postern:acr:1"),
        (["otp", "mfa"], "urn:postern:acr:2"), (["otp", "sms", "mfa"], "urn:postern:acr:2"),
        (["hwk", "user", "mfa"], "phr"), (["swk", "user", "mfa"], "phr"), (["otp", "swk", "user", "mfa"], "phr"),
        ([], "urn:postern:acr:1"),
    ])
    func `what was proven says how strong the sign-in was`(amr: [String], acr: String) {
        #expect(AuthenticationContext(amr: amr).rawValue == acr)
    }

    @Test func `each context is above the one before`() {
        #expect(AuthenticationContext.allCases.map(\.level) == [1, 2, 3])
        #expect(AuthenticationContext.allCases == AuthenticationContext.allCases.sorted())
    }

    /// By a code (one factor), with a second factor, and by a passkey.
    @Test(
        arguments: [
            (nil, "urn:postern:acr:1", "urn:postern:acr:2", "phr"),
            ("", "urn:postern:acr:1", "urn:postern:acr:2", "phr"),
            ("  ", "urn:postern:acr:1", "urn:postern:acr:2", "phr"),
            ("urn:postern:acr:1", "urn:postern:acr:1", "urn:postern:acr:1", "urn:postern:acr:1"),
            ("urn:postern:acr:2", nil, "urn:postern:acr:2", "urn:postern:acr:2"),
            ("phr urn:postern:acr:1", "urn:postern:acr:1", "urn:postern:acr:1", "phr"),
            ("urn:postern:acr:1 phr", "urn:postern:acr:1", "urn:postern:acr:1", "urn:postern:acr:1"),
            ("x urn:postern:acr:2  urn:postern:acr:1 y", "urn:postern:acr:1", "urn:postern:acr:2", "urn:postern:acr:2"),
            ("phr", nil, nil, "phr"),
        ] as [(String?, String?, String?, String?)])
    func `an answer says the first value that is met, or the highest when none was asked for`(
        text: String?, code: String?, secondFactor: String?, passkey: String?
    ) throws {
        let asked = try RequestedContexts(text, upTo: .phishingResistant)
        #expect(asked.met(by: ["otp"])?.rawValue == code)
        #expect(asked.met(by: ["otp", "mfa"])?.rawValue == secondFactor)
        #expect(asked.met(by: ["swk", "user", "mfa"])?.rawValue == passkey)
    }

    @Test(arguments: ["phr", "x", "phrh", "PHR", "phr x", String(repeating: "phr ", count: 50), "urn:postern:acr:3"])
    func `what a grant cannot reach is refused before any factor`(text: String) {
        let refusal = #expect(throws: TokenError.self) { try RequestedContexts(text, upTo: .twoFactors) }
        #expect(refusal?.code == .unmetAuthenticationRequirements)
        #expect(refusal?.description == "The requested authentication context cannot be met.")
    }

    @Test func `a grant that signs nobody in ignores what is asked for`() throws {
        #expect(try RequestedContexts("x", upTo: nil) == .none)
        #expect(RequestedContexts.none.least == nil)
    }

    @Test func `however many values there are, each that is known is kept once`() throws {
        let text = String(repeating: "urn:postern:acr:2 x urn:postern:acr:1 ", count: 1000)
        let asked = try RequestedContexts(text, upTo: .twoFactors)
        #expect(asked.values == [.twoFactors, .oneFactor])
        #expect(asked.least == .oneFactor)
    }

    @Test(arguments: ["", "+5", "-1", " 5", "5 ", "0x5", "5.0", "five", "٥", "99999999999999999999"])
    func `an age is a whole number of seconds`(text: String) throws {
        let refusal = #expect(throws: TokenError.self) { try RequestedContexts(nil, upTo: nil, maximumAge: text) }
        #expect(refusal?.code == .invalidRequest)
        #expect(try RequestedContexts(nil, upTo: nil, maximumAge: "0").maximumAge == 0)
        #expect(try RequestedContexts(nil, upTo: nil, maximumAge: "0600").maximumAge == 600)
        #expect(try RequestedContexts(nil, upTo: nil).maximumAge == nil)
    }
}
