import Encoding
import Testing

@Suite("Addresses that browsers take for secure")
struct SecureAddressTests {
    @Test(
        "https, and http to a name of this machine",
        arguments: [
            "https://example.com", "https://app.localhost:8080/x", "http://localhost", "http://localhost/",
            "http://localhost:8080", "http://app.localhost", "http://app.localhost:8080/magic-login?token=x",
            "http://a.b-c.localhost?x=1", "http://1.localhost#x",
        ])
    func secure(_ url: String) {
        #expect(SecureAddress.holds(url))
    }

    @Test(
        "names that only look like it, and whatever is no such URL",
        arguments: [
            "http://example.com", "http://app.localhost.example", "http://localhost.example:8080", "http://xlocalhost",
            "http://x-localhost", "http://app.localhost.", "http://.localhost", "http://a..localhost",
            "http://-a.localhost", "http://a-.localhost", "http://a_b.localhost", "http://APP.localhost",
            "http://x@app.localhost", "http://app.localhost:1@evil.example", "http://app.localhost:x",
            "http://127.0.0.1",
            "http://", "http:app.localhost", "HTTP://localhost", "ftp://localhost", "localhost", "",
        ])
    func insecure(_ url: String) {
        #expect(!SecureAddress.holds(url))
    }
}
