import ArgumentParser

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

    @Option(name: .long, help: "The realm's origin, such as http://localhost:8080.")
    var url: String

    @Option(name: .long, help: "A public client with gt:authorization_code.")
    var client: String

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
        var options = TryOptions()
        (options.url, options.client, options.code, options.scope) = (url, client, code, scope)
        options.email = email ?? phone ?? ""
        options.dpop = dpop
        let app = try HeadlessApp(options)
        let listener = try LoopbackListener()
        let request = HostedRequest(client: client, scope: scope, redirectURI: listener.origin)
        let answer: [String: String]
        if email ?? phone != nil {
            answer = try await app.signInOnPages(request)
        } else {
            say("Open this address in a browser:\n\n  \(url)\(request.path)\n")
            answer = HostedRequest.members(of: try await listener.target())
            say("> GET \(listener.origin)/?\(answer.keys.sorted().joined(separator: ", "))\n< 200 OK\n")
        }
        let tokens = try await app.token([
            ("grant_type", "authorization_code"), ("client_id", client), ("code", try request.code(in: answer)),
            ("redirect_uri", listener.origin), ("code_verifier", request.verifier),
        ])
        try await app.userInfo(tokens)
    }
}
