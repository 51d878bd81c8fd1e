import Grants
import Persistence
import Testing

@testable import HostedPages

/// The steps of a sign-in, as pure functions: what a form asks for, and what the next page shows.
@Suite("Steps of a sign-in")
struct SignInMoveTests {
    private let rules = SignInRules(
        methods: [.emailCode, .magicLink, .passkey], registration: .jitOnOTP, rpID: "a.example")

    private func transaction(_ step: SignInStep) -> SignInTransaction {
        var transaction = SignInTransaction(
            purpose: [1], browser: [UInt8](repeating: 7, count: 32), expiresAt: 1, step: step)
        transaction.address = "ada@example.com"
        return transaction
    }

    private func form(_ pairs: (String, String)...) throws -> FormParameters {
        try #require(FormParameters(pairs.map { (name: $0.0, value: $0.1) }))
    }

    private func move(
        _ step: SignInStep, _ rules: SignInRules? = nil, _ pairs: (String, String)...
    ) throws -> (SignInMove, SignInTransaction) {
        var transaction = transaction(step)
        transaction.ceremony = [1, 2, 3]
        let form = try #require(FormParameters(pairs.map { (name: $0.0, value: $0.1) }))
        let move = try transaction.move(form, rules ?? self.rules)
        return (move, transaction)
    }

    @Test func `an address gets a code, in its canonical form`() throws {
        let (move, next) = try move(.address, nil, ("action", "continue"), ("address", " Ada@Example.com "))
        #expect(move == .sendCode(resends: false))
        #expect(next.address == "Ada@Example.com")
    }

    @Test func `without codes it gets a link`() throws {
        let rules = SignInRules(methods: [.magicLink])
        #expect(try move(.address, rules, ("action", "continue"), ("address", "a@b.example")).0 == .sendLink)
    }

    @Test(arguments: ["", "x", "a@b", "a@b.example, c@d.example", String(repeating: "a", count: 9000) + "@b.example"])
    func `what is no address is kept and faulted`(_ typed: String) throws {
        let (move, next) = try move(.address, nil, ("action", "continue"), ("address", typed))
        #expect(move == .show)
        #expect(next.fault == .addressInvalid)
        #expect(next.address == String(typed.prefix(254)))
        #expect(next.step == .address)
    }

    @Test(arguments: SignInStep.allCases)
    func `no step takes an action or a field that is not its own`(_ step: SignInStep) throws {
        for action in ["", "admin", "restart"] {
            var transaction = transaction(step)
            let form = try form(("action", action))
            #expect(throws: InvalidForm.self) { try transaction.move(form, rules) }
        }
        for field in SignInStep.allFields.subtracting(step.fields) {
            var transaction = transaction(step)
            let form = try form(("action", "continue"), (field, "x"))
            #expect(throws: InvalidForm.self, "\(field)") { try transaction.move(form, rules) }
        }
    }

    @Test(arguments: SignInStep.allCases.filter { $0 != .offerPasskey })
    func `every step can be left`(_ step: SignInStep) throws {
        #expect(try move(step, nil, ("action", "cancel")).0 == .deny)
    }

    @Test func `every step has a name, a number and a heading of its own`() throws {
        let steps = SignInStep.allCases
        #expect(Set(steps.map(\.name)).count == steps.count)
        #expect(Set(steps.map(\.page.number)).count == steps.count)
        #expect(Set(steps.map { $0.page.title(transaction($0), rules) }).count == steps.count)
        for step in steps { #expect(SignInStep(number: step.page.number) == step) }
        #expect(SignInStep(number: 0) == nil)
    }

    @Test func `a step cannot be skipped`() throws {
        for step in [SignInStep.address, .code, .link, .secondFactor, .profile] {
            for action in ["allow", "skip", "create"] {
                #expect(throws: InvalidForm.self) { try move(step, nil, ("action", action)) }
            }
        }
    }

    @Test func `a code is taken as it is pasted`() throws {
        #expect(
            try move(.code, nil, ("action", "continue"), ("code", " 123-456 ")).0 == .proveCode(TypedCode("123456")))
    }

    @Test func `the sixth message is not sent`() throws {
        var transaction = transaction(.code)
        transaction.sends = 5
        let form = try form(("action", "resend"))
        #expect(try transaction.move(form, rules) == .show)
        #expect(transaction.fault == .sendLimit)
    }

    @Test func `a resend that sends nothing costs no message`() {
        var transaction = transaction(.code)
        transaction.countSend(left: 4, sameHandle: false, at: 100)
        #expect((transaction.report, transaction.sentAt) == (nil, 100))
        transaction.countSend(left: 4, sameHandle: true, at: 110)
        #expect((transaction.sends, transaction.addresses) == (1, 1))
        #expect((transaction.report, transaction.sentAt) == (.tooSoon, 100))
        transaction.countSend(left: 3, sameHandle: true, at: 170)
        #expect((transaction.report, transaction.sentAt) == (.again, 170))
        transaction.countSend(left: 4, sameHandle: false, at: 180)
        #expect((transaction.sends, transaction.addresses) == (3, 1))
    }

    @Test func `a report is of one request on one page`() throws {
        var transaction = transaction(.code)
        transaction.sends = 1
        transaction.countSend(left: 4, sameHandle: false, at: 100)
        transaction.arrive(at: .code)
        #expect(transaction.report == .again)
        transaction.arrive(at: .link)
        #expect(transaction.report == nil)
        transaction.report = .tooSoon
        _ = try transaction.move(form(("action", "continue")), rules)
        #expect(transaction.report == nil)
    }

    @Test func `the link of a page can be asked for again`() throws {
        #expect(try move(.link, nil, ("action", "resend")).0 == .sendLink)
        var transaction = transaction(.link)
        transaction.sends = 5
        #expect(try transaction.move(form(("action", "resend")), rules) == .show)
        #expect(transaction.fault == .sendLimit)
    }

    @Test func `the fourth address is not taken`() throws {
        var transaction = transaction(.code)
        transaction.addresses = 3
        transaction.sends = 1
        transaction.handle = "pas_x"
        let other = try form(("action", "other-address"))
        #expect(try transaction.move(other, rules) == .giveUp(handle: "pas_x"))
        #expect((transaction.step, transaction.handle) == (.address, ""))
        let typed = try form(("action", "continue"), ("address", "d@e.example"))
        #expect(try transaction.move(typed, rules) == .show)
        #expect(transaction.fault == .sendLimit)
    }

    @Test func `without tries only another message helps`() throws {
        var transaction = transaction(.code)
        transaction.wrongCodes = 5
        let form = try form(("action", "continue"), ("code", "123456"))
        #expect(try transaction.move(form, rules) == .show)
        #expect(transaction.fault == .noTries)
    }

    @Test func `an address that was pushed cannot be changed`() throws {
        var rules = rules
        rules.fixedAddress = "victim@x.example"
        #expect(throws: InvalidForm.self) {
            try move(.address, rules, ("action", "continue"), ("address", "me@x.example"))
        }
        #expect(throws: InvalidForm.self) { try move(.code, rules, ("action", "other-address")) }
    }

    @Test func `a registration needs its names and terms`() throws {
        var rules = rules
        rules.registration = .explicitEndpoint
        rules.registrationFields = RegistrationFields(firstName: .required, lastName: .optional)
        rules.hasTerms = true
        let (register, begun) = try move(.address, rules, ("action", "register"), ("address", "n@x.example"))
        #expect((register, begun.step) == (.show, .register))
        let wrong: [([(String, String)], FormField)] = [
            ([("first_name", "Ada")], .terms), ([("terms", "yes")], .firstName),
            ([("first_name", "   "), ("terms", "yes")], .firstName),
            ([("first_name", "A\u{7}"), ("terms", "yes")], .firstName),
            ([("first_name", "Ada"), ("last_name", "L\u{7}"), ("terms", "yes")], .lastName),
        ]
        for (missing, field) in wrong {
            var transaction = transaction(.register)
            let form = try #require(
                FormParameters(
                    ([("action", "continue"), ("address", "n@x.example")] + missing).map { (name: $0.0, value: $0.1) }))
            #expect(try transaction.move(form, rules) == .show)
            #expect((transaction.fault, transaction.wrongField) == (.fieldMissing, field))
            #expect(transaction.address == "n@x.example")
            let typed = Dictionary(uniqueKeysWithValues: missing)
            #expect(
                transaction.profile
                    == TypedProfile(
                        first: typed["first_name"] ?? "", last: typed["last_name"] ?? "",
                        acceptsTerms: typed["terms"] != nil))
        }
        let (move, next) = try move(
            .register, rules, ("action", "continue"), ("address", "n@x.example"), ("first_name", "Ada"),
            ("terms", "yes"))
        #expect(move == .sendCode(resends: false, first: PersonName("Ada")))
        #expect(next.facts == [.registers, .acceptsTerms])
    }

    @Test func `an optional name of blanks is none`() throws {
        var rules = rules
        rules.registration = .explicitEndpoint
        rules.registrationFields = RegistrationFields(firstName: .required, lastName: .optional)
        let (move, _) = try move(
            .register, rules, ("action", "continue"), ("address", "n@x.example"), ("first_name", "Ada"),
            ("last_name", "  "))
        #expect(move == .sendCode(resends: false, first: PersonName("Ada"), last: nil))
    }

    @Test func `a wrong recovery code is one, and not a wrong code of the app`() throws {
        let (_, recovery) = try move(.secondFactor, nil, ("action", "continue"), ("recovery_code", "abcd"))
        #expect(recovery.faultField == .recoveryCode)
        var missing = transaction(.secondFactor)
        _ = try missing.move(form(("action", "continue")), rules)
        #expect(missing.wrongField == .totpCode)
    }

    @Test func `what is no fault of a field marks none`() {
        for fault in [InputFault.rateLimited, .unavailable, .sendLimit, .noTries, .passkeyFailed] {
            var transaction = transaction(.address)
            transaction.fault = fault
            #expect(transaction.wrongField == nil)
        }
    }

    @Test func `what is wrong is said in words that fit it`() {
        var register = transaction(.register)
        register.profile.first = "A\u{7}"
        (register.fault, register.faultField) = (.fieldMissing, .firstName)
        #expect(register.faultText(rules) == "fault-name_invalid")
        register.profile.first = " "
        #expect(register.faultText(rules) == "fault-field_missing")
        register.faultField = .terms
        #expect(register.faultText(rules) == "fault-terms_missing")
        #expect(SignInStep.allCases.allSatisfy { transaction($0).faultText(rules) == nil })
        var used = transaction(.address)
        used.addresses = 3
        #expect(used.faultText(rules) == "fault-address_limit")
        var dead = transaction(.code)
        dead.wrongCodes = 5
        #expect(dead.hasNoTries(rules) && dead.faultText(rules) == "fault-no_tries")
    }

    @Test func `a second factor goes with the proof that it completes`() throws {
        #expect(
            try move(.secondFactor, nil, ("action", "continue"), ("totp_code", "123 456")).0
                == .proveCode(TypedCode(""), and: .totp(TypedCode("123 456"))))
        var byLink = transaction(.secondFactor)
        byLink.facts = .byLink
        let form = try form(("action", "continue"), ("recovery_code", "abcd-efgh"))
        #expect(try byLink.move(form, rules) == .proveLink(and: .recovery(TypedCode("abcd-efgh"))))
    }

    private func phones(methods: Set<Hosted.Method> = [.emailCode, .phoneCode]) throws -> SignInRules {
        let realm = try Realm.onPages([
            "channels": ["sms", "voice"],
            "phones": ["regions": ["AT", "DE"], "default_region": "DE", "sends": 3, "prefixes": [[String: Any]]()],
        ])
        return SignInRules(
            methods: methods,
            addresses: TypedAddresses(realm, takesMail: methods.contains(.emailCode), takesPhones: true))
    }

    @Test(arguments: [
        ("0176 1234 5678", "+4917612345678"), ("+43 (664) 1234567", "+436641234567"), ("a@b.example", "a@b.example"),
    ])
    func `a phone number is read as people type it`(_ typed: String, _ read: String) throws {
        let (move, next) = try move(.address, phones(), ("action", "continue"), ("address", typed))
        #expect(move == .sendCode(resends: false))
        #expect(next.address == read)
    }

    @Test(arguments: [
        ("+49", InputFault.phoneInvalid), ("letters", .phoneInvalid), ("+1 415 555 2671", .phoneUnsupported),
        ("a@b", .addressInvalid), ("", .addressInvalid),
    ])
    func `what is no number is faulted`(_ typed: String, _ fault: InputFault) throws {
        let (move, next) = try move(.address, phones(), ("action", "continue"), ("address", typed))
        #expect(move == .show)
        #expect((next.fault, next.address) == (fault, typed))
    }

    @Test func `links go to phones where a client wants a number, and a code may take their place`() throws {
        var rules = try phones(methods: [.phoneCode, .magicLink])
        let typed = [("action", "continue"), ("address", "+4917612345678")]
        #expect(try move(.address, rules, typed[0], typed[1]).0 == .sendCode(resends: false))
        rules.prefersLink = true
        #expect(try move(.address, rules, typed[0], typed[1]).0 == .sendCode(resends: false))
        rules.linksPhones = true
        #expect(try move(.address, rules, typed[0], typed[1]).0 == .sendLink)
        var transaction = transaction(.link)
        transaction.address = "+4917612345678"
        #expect(try transaction.move(form(("action", "code")), rules) == .sendCode(resends: false))
    }

    @Test func `a held number goes to a new account where one may register, with names if they are due`() throws {
        var held = transaction(.code)
        held.proveAgain(
            try #require(HeldNumber([UInt8](repeating: 5, count: 16) + Array("+4917612345678|sms".utf8))))
        #expect(held.step == .address && held.address.isEmpty && held.handle.isEmpty)
        var rules = SignInRules()
        func register() throws -> (SignInMove, SignInStep) {
            var next = held
            let move = try next.move(form(("action", "register")), rules)
            #expect(next.fault == (rules.replacesAccount ? nil : .registrationClosed))
            return (move, next.step)
        }
        #expect(throws: InvalidForm.self) { try register() }
        held.facts.insert(.offersRegistration)
        #expect(try register() == (.show, .address))
        rules.replacesAccount = true
        #expect(try register() == (.register(first: nil, last: nil), .address))
        rules.hasTerms = true
        #expect(try register() == (.show, .profile))
    }

    @Test func `a code goes to a phone by the channels that there are, and within their bound`() throws {
        var transaction = transaction(.code)
        transaction.address = "+4917612345678"
        (transaction.sends, transaction.addresses) = (2, 1)
        let rules = try phones()
        #expect(try transaction.move(form(("action", "voice")), rules) == .sendCode(resends: true, channel: .voice))
        #expect(throws: InvalidForm.self) { try transaction.move(form(("action", "whatsapp")), rules) }
        #expect(throws: InvalidForm.self) { try transaction.move(form(("action", "link")), rules) }
        transaction.sends = 3
        #expect(try transaction.move(form(("action", "sms")), rules) == .show)
        #expect(transaction.fault == .sendLimit)
        transaction.address = "ada@example.com"
        #expect(throws: InvalidForm.self) { try transaction.move(form(("action", "sms")), rules) }
    }

    @Test func `a person who would rather get a code does not share`() throws {
        var rules = SignInRules()
        rules.provesAddressOnly = true
        let (move, next) = try move(.continueAs, rules, ("action", "other-account"))
        #expect((move, next.step, next.facts) == (.show, .address, .wantsCode))
    }
}
