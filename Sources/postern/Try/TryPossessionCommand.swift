import ArgumentParser
import Foundation
import PosternClient

/// `postern try possession`.
struct TryPossessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "possession",
        abstract: "Be a backend and its page: prove a phone number by a code, on Prove's calls.",
        discussion: """
            Without --otp the code is read from the dev outbox, or asked for. `postern dev` keeps the secret of \
            `demo-prove` in .postern/demo-prove.secret.
            """)

    @OptionGroup var server: ServerOptions

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
        try await explaining {
            let network = PrintingTransport()
            let backend = try ProveBackend(
                server, secret: secret.trimmingCharacters(in: .whitespacesAndNewlines), over: network)
            let page = try HeadlessApp(server, over: network)
            say("1. The backend takes a token of its service account.\n")
            let token = try await backend.token()

            say("2. The backend starts: an authToken for the page, a correlationId for itself.\n")
            let started = try await backend.begin(phone, token)

            say("3. The page opens the transaction, which pins it to the page's key.\n")
            let check = try await page.client.possession(started.authToken)
            if await check.status.step != .passed {
                say("4. The person agrees: send a code.\n")
                let before = try await page.outbox.newest(.code, to: phone)
                _ = try await check.send(.otp)
                let code = try await page.outbox.code(given: otp, sentTo: phone, since: before)

                say("5. The page checks the code.\n")
                _ = try await check.check(code)
            }

            say("6. The backend asks what came of it.\n")
            let success = try await backend.success(of: started, token)
            guard success == "true" else { throw CommandFailure("the number was not proven: success is \(success)") }
        }
    }
}
