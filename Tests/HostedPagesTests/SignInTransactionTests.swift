import Grants
import Persistence
import Testing

@testable import HostedPages

@Suite("Sealed state of a sign-in")
struct SignInTransactionTests {
    private let keyring: Keyring
    private let realm: Realm

    init() throws {
        keyring = try Keyring(parsing: Keyring.generateLine())
        realm = try .onPages()
    }

    private func transaction() -> SignInTransaction {
        var transaction = SignInTransaction(
            purpose: Array(0...255), browser: [UInt8](repeating: 9, count: 32), expiresAt: 1_800_000_000, step: .code)
        transaction.fault = .wrongCode
        transaction.link = .pending
        (transaction.faultField, transaction.report, transaction.sentAt) = (.code, .tooSoon, 1_795_356_239)
        (transaction.address, transaction.handle) = ("ada@example.com", "pas_handle")
        (transaction.code, transaction.ceremony, transaction.ownSession) = ("123456", [1, 2, 3], "pss_y")
        transaction.session = [1, 2, 3, 4, 5, 6, 7, 8]
        (transaction.sends, transaction.addresses, transaction.wrongCodes) = (1, 2, 3)
        transaction.facts = [.registers, .byLink]
        transaction.held = HeldNumber([UInt8](repeating: 5, count: 16) + Array("+436641234567|sms".utf8))
        return transaction
    }

    @Test func `it comes back as it was sealed`() throws {
        let text = try transaction().text(realm: realm, host: "a.example", keyring: keyring)
        #expect(SignInTransaction(text, realm: realm, host: "a.example", keyring: keyring) == transaction())
    }

    @Test func `typed names stay on the pages that ask for them`() throws {
        for step in SignInStep.allCases {
            var transaction = transaction()
            transaction.step = step
            transaction.profile = TypedProfile(first: "Ada", last: "Ł", acceptsTerms: true)
            let text = try transaction.text(realm: realm, host: "a.example", keyring: keyring)
            let opened = try #require(
                SignInTransaction(text, realm: realm, host: "a.example", keyring: keyring))
            #expect(opened.profile == (step == .register || step == .profile ? transaction.profile : TypedProfile()))
        }
    }

    @Test func `a held number says what it was proven by`() throws {
        let held = try #require(transaction().held)
        #expect(held.number == "+436641234567" && held.channel == .sms && HeldNumber(held.encoded) == held)
        #expect(HeldNumber([UInt8](repeating: 5, count: 16)) == nil && HeldNumber([]) == nil)
        var none = transaction()
        none.held = nil
        let text = try none.text(realm: realm, host: "a.example", keyring: keyring)
        #expect(SignInTransaction(text, realm: realm, host: "a.example", keyring: keyring) == none)
    }

    @Test func `another host, realm or key does not open it`() throws {
        let text = try transaction().text(realm: realm, host: "a.example", keyring: keyring)
        #expect(SignInTransaction(text, realm: realm, host: "b.example", keyring: keyring) == nil)
        #expect(SignInTransaction(text, realm: try .onPages(), host: "a.example", keyring: keyring) == nil)
        let other = try Keyring(parsing: Keyring.generateLine())
        #expect(SignInTransaction(text, realm: realm, host: "a.example", keyring: other) == nil)
    }

    @Test func `every changed character is refused`() throws {
        let text = try transaction().text(realm: realm, host: "a.example", keyring: keyring)
        for index in text.indices {
            var changed = text
            changed.replaceSubrange(index...index, with: text[index] == "A" ? "B" : "A")
            #expect(SignInTransaction(changed, realm: realm, host: "a.example", keyring: keyring) == nil)
        }
        #expect(SignInTransaction("", realm: realm, host: "a.example", keyring: keyring) == nil)
        #expect(
            SignInTransaction(
                String(repeating: "A", count: 1 << 20), realm: realm, host: "a.example", keyring: keyring) == nil)
    }

    @Test func `addresses of any usual length give values of one length`() throws {
        let lengths = try Set(
            ["a@b.io", "ada.lovelace@mail.example.com", "a.much.longer.address@with.a.long.host.example.org"].map {
                var transaction = transaction()
                transaction.address = $0
                return try transaction.text(realm: realm, host: "a.example", keyring: keyring).utf8.count
            })
        #expect(lengths.count == 1)
    }

    @Test func `the largest one fits into three KiB`() throws {
        var transaction = transaction()
        transaction.purpose = [UInt8](repeating: 1, count: SignInTransaction.maximumPurpose)
        transaction.address = String(repeating: "a", count: 254)
        transaction.handle = String(repeating: "h", count: 430)
        transaction.ceremony = []
        for step in [SignInStep.code, .profile] {
            transaction.step = step
            transaction.profile.first = String(repeating: "n", count: TypedProfile.maximumName)
            transaction.profile.last = transaction.profile.first
            #expect(try transaction.text(realm: realm, host: "a.example", keyring: keyring).utf8.count <= 3072)
        }
    }
}
