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
}
