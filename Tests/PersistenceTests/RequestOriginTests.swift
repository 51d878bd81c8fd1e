@testable import Persistence
import Testing

@Suite("Where a link was asked for from")
struct RequestOriginTests {
    @Test(arguments: [
        ("198.51.100.77", "198.51.x.x"), ("2001:db8:1:2:0:0:0:0/64", "2001:db8:x:x:x:x:x:x"),
        ("2001:db8::/48", "2001:db8:x:x:x:x:x:x"), ("0.0.0.0", "0.0.x.x"), ("0:0:0:0:0:0:0:1", "0:0:x:x:x:x:x:x"),
    ])
    func `an address is shortened to its network`(_ source: String, _ shown: String) {
        #expect(RequestOrigin(application: "App", time: 0, source: source).address == shown)
    }

    @Test(arguments: ["unknown", "", "1.2.3", "1.2.3.256", "a.b.c.d", "::1", "<b>:c:d", "12345:1::", "-1.2.3.4"])
    func `what is no address is not shown`(_ source: String) {
        #expect(RequestOrigin(application: "App", time: 0, source: source).address == nil)
    }

    @Test(arguments: [
        (0, "1 January 1970, 00:00 UTC"), (1_795_356_239, "22 November 2026, 14:03 UTC"),
        (951_782_400, "29 February 2000, 00:00 UTC"), (4_107_542_399, "28 February 2100, 23:59 UTC"),
        (4_107_542_400, "1 March 2100, 00:00 UTC"), (-1, "1 January 1970, 00:00 UTC"),
        (.infinity, "1 January 1970, 00:00 UTC"), (1e300, "31 December 9999, 23:59 UTC"),
    ])
    func `a time is written in UTC, to the minute`(_ seconds: Double, _ text: String) {
        #expect(RequestOrigin(application: "App", time: seconds, source: nil).timeText == text)
    }
}
