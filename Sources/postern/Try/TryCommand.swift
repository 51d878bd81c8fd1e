import ArgumentParser
import Foundation
import PosternClient

/// `postern try`.
struct TryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "A headless native app: run a flow against a running server and print every request and answer.",
        discussion: """
            The app is built on PosternClient, the Swift library for apps. Its session and its key are in memory and \
            end with the process.
            """,
        subcommands: [
            TryOTPCommand.self, TryMagicCommand.self, TryPasskeyCommand.self, TryRefreshCommand.self,
            TryHostedCommand.self, TryApprovalCommand.self, TryPossessionCommand.self,
        ])
}

/// What every flow needs.
struct ServerOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The realm's origin, such as https://id.example.com; http on this machine only: http://localhost:8080.")
    var url: String

    @Option(name: .long, help: "A client with the grants to try.")
    var client: String

    /// - Throws: ``CommandFailure`` when it is none.
    var origin: URL {
        get throws {
            guard let origin = URL(string: url), origin.scheme == "http" || origin.scheme == "https", origin.host != nil
            else { throw CommandFailure("--url must be an origin such as http://localhost:8080") }
            return origin
        }
    }
}

/// What a flow with a user needs besides.
struct TryOptions: ParsableArguments {
    @OptionGroup var server: ServerOptions

    @Option(name: .long, help: "The user's address.")
    var email: String

    @Option(name: .long, help: "The code from the mail; read from the dev outbox, else asked for, when not given.")
    var code: String?

    @Option(name: .long, help: "What the user's authenticator app shows, for an account with TOTP.")
    var totp: String?

    @Option(name: .long, help: "The scope to ask for.")
    var scope = "openid offline_access"

    @Flag(
        name: .long,
        help:
            "Bind everything to a key made for this run: send a proof of possession (DPoP, RFC 9449) with each request."
    )
    var dpop = false

    var secondFactor: SecondFactor? { totp.map(SecondFactor.totp) }
}

/// `postern try otp`.
struct TryOTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "otp", abstract: "Ask for a code, redeem it, read userinfo.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        try await explaining {
            let app = try HeadlessApp(options)
            try await app.signInByCode(options)
            try await app.userInfo()
        }
    }
}
