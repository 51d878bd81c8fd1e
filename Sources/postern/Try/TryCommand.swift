import ArgumentParser

/// `postern try`.
struct TryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "A headless native app: run a flow against a running server and print every request and answer.",
        subcommands: [
            TryOTPCommand.self, TryMagicCommand.self, TryPasskeyCommand.self, TryRefreshCommand.self,
            TryHostedCommand.self, TryApprovalCommand.self, TryPossessionCommand.self,
        ])
}

/// What every flow needs.
struct TryOptions: ParsableArguments {
    @Option(name: .long, help: "The realm's origin, such as http://localhost:8080.")
    var url: String

    @Option(name: .long, help: "A public client with the grants to try.")
    var client: String

    @Option(name: .long, help: "The user's address.")
    var email: String

    @Option(name: .long, help: "The code from the mail; read from the dev outbox, else asked for, when not given.")
    var code: String?

    @Option(name: .long, help: "The scope to ask for.")
    var scope = "openid offline_access"

    @Flag(
        name: .long,
        help:
            "Bind everything to a key made for this run: send a proof of possession (DPoP, RFC 9449) with each request."
    )
    var dpop = false
}

/// `postern try otp`.
struct TryOTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "otp", abstract: "Ask for a code, redeem it, read userinfo.")

    @OptionGroup var options: TryOptions

    @Option(name: .long, help: "What the user's authenticator app shows, for an account with TOTP.")
    var totp: String?

    func run() async throws {
        let app = try HeadlessApp(options)
        let tokens = try await app.signInByCode(totp: totp)
        try await app.userInfo(tokens)
    }
}

/// `postern try refresh`.
struct TryRefreshCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh", abstract: "Sign in by code, refresh, and repeat the refresh as after a lost answer.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        let app = try HeadlessApp(options)
        let tokens = try await app.signInByCode()
        let first = try await app.refresh(tokens)
        let again = try await app.refresh(tokens)
        guard first.refreshToken == again.refreshToken else {
            throw CommandFailure("the repeated refresh gave another successor")
        }
        say("The repeated refresh gave the same successor: a lost answer does not sign the user out.")
        try await app.userInfo(again)
    }
}
