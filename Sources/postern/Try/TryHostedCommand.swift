import ArgumentParser
import Foundation
import PosternClient

/// `postern try hosted`.
struct TryHostedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosted",
        abstract: "Sign in on the pages by the authorization code flow with PKCE, read userinfo.",
        discussion: """
            Listens on a port of 127.0.0.1, which must be a redirect URI of the client: admin.put_redirect_uri(realm, \
            client_id, 'http://127.0.0.1'). Prints the address to open in a browser, and waits for it to come back. \
            With --email or --phone it fills in the pages itself.
            """)

    @OptionGroup var server: ServerOptions

    @Option(name: .long, help: "The user's address: fill in the pages with it.")
    var email: String?

    @Option(name: .long, help: "The user's phone number, as it may be typed on the page: the same.")
    var phone: String?

    @Option(name: .long, help: "The code that is sent; read from the dev outbox, else asked for, when not given.")
    var code: String?

    @Option(name: .long, help: "The scope to ask for.")
    var scope = "openid offline_access"

    @Flag(name: .long, help: "Bind the tokens to a key made for this run (DPoP, RFC 9449).")
    var dpop = false

    func validate() throws {
        guard email == nil || phone == nil else { throw ValidationError("give --email or --phone, not both") }
    }

    func run() async throws {
        try await explaining {
            let app = try HeadlessApp(server, scope: scope, dpop: dpop, redirect: URL(string: "http://127.0.0.1"))
            if let address = email ?? phone {
                let person = HeadlessBrowser.Person(address: address, code: code, outbox: app.outbox)
                _ = try await app.client.signIn(onPages: HeadlessBrowser(person))
            } else {
                let browser = LoopbackBrowser { page in say("Open this address in a browser:\n\n  \(page)\n") }
                _ = try await app.client.signIn(onPages: browser)
            }
            try await app.userInfo()
        }
    }
}
