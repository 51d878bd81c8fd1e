import ArgumentParser
import Foundation

/// `postern try possession`.
struct TryPossessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "possession",
        abstract: "Be a backend and its page: prove a phone number by a code, on Prove's calls.",
        discussion: """
            Without --otp the code is read from the dev outbox, or asked for. `postern dev` keeps the secret of \
            `demo-prove` in .postern/demo-prove.secret.
            """)

    @Option(name: .long, help: "The realm's origin, such as http://localhost:8080.")
    var url: String

    @Option(name: .long, help: "A confidential client with ept:possession.")
    var client: String

    @Option(name: .long, help: "The file with its secret.")
    var secretFile: String

    @Option(name: .long, help: "The phone number.")
    var phone: String

    @Option(name: .long, help: "The code of the SMS; read from the dev outbox, else asked for, when not given.")
    var otp: String?

    func run() async throws {
        guard let secret = try? String(contentsOfFile: secretFile, encoding: .utf8) else {
            throw CommandFailure("\(secretFile) cannot be read")
        }
        var options = TryOptions()
        (options.url, options.client, options.email, options.code) = (url, client, phone, otp)
        (options.scope, options.dpop) = ("", false)
        let backend = try HeadlessApp(options)
        say("1. The backend takes a token of its service account.\n")
        let token = try backend.decodeTokens(
            try await backend.post(
                "/token",
                form: [
                    ("grant_type", "client_credentials"), ("client_id", client),
                    ("client_secret", secret.trimmingCharacters(in: .whitespacesAndNewlines)),
                ]))

        say("2. The backend starts: an authToken for the page, a correlationId for itself.\n")
        let started = try await backend.unify(phone, token)
        let page = backend.holding(ProofKey())

        say("3. The page opens the transaction, which pins it to the page's key.\n")
        if try await page.possession("open", "{}", started.authToken).state != "passed" {
            say("4. The person agrees: send a code.\n")
            let before = try await page.newestCodeMail()
            _ = try await page.possession("send", #"{"channel":"otp"}"#, started.authToken)
            let code = try await page.code(after: before)

            say("5. The page checks the code.\n")
            _ = try await page.possession("check", #"{"otp":"\#(code)"}"#, started.authToken)
        }

        say("6. The backend asks what came of it.\n")
        let status = try await backend.unifyStatus(started, token)
        guard status == "true" else { throw CommandFailure("the number was not proven: success is \(status)") }
    }
}
