@testable import Grants
import Persistence
import Testing

@Suite("Assertions of sources over their budget")
struct AssertionChecksTests {
    private let clock = TestClock()
    private let realm = UUIDValue.random()
    private let client = UUIDValue.random()

    @Test func `a source gets ten verifications a second, of whatever clients`() {
        let checks = AssertionChecks(clock: clock.read)
        let admitted = (0..<100).count { _ in checks.admits(.random(), realm: realm, source: "s") }
        #expect(admitted == AssertionChecks.perSecond)
        #expect(checks.admits(client, realm: realm, source: "another"))
        #expect(checks.admits(client, realm: .random(), source: "s"))
        clock.advance(.seconds(1))
        #expect(checks.admits(client, realm: realm, source: "s"))
    }

    @Test func `a client that authenticated from there lately is always verified`() {
        let checks = AssertionChecks(clock: clock.read)
        checks.succeeded(client, realm: realm, source: "s")
        for _ in 0..<1000 { #expect(checks.admits(client, realm: realm, source: "s")) }
        #expect(
            (0..<100).count { _ in checks.admits(.random(), realm: realm, source: "s") } == AssertionChecks.perSecond)
        clock.advance(.seconds(601))
        #expect(!(0..<100).allSatisfy { _ in checks.admits(client, realm: realm, source: "s") })
    }
}
