import ArgumentParser
import PosternClient

/// `postern try magic`.
struct TryMagicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "magic",
        abstract: "Ask for a link, poll, type the number on the link's page, sign in by polling, read userinfo.",
        discussion: "The link is read from the dev outbox; without one, open it from the mail while the app polls.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        try await explaining {
            let app = try HeadlessApp(options)
            let before = try await app.outbox.newest(.link, to: options.email)
            let request = try await app.client.requestLink(to: .email(options.email))
            let number = request.matchNumber ?? ""
            say("The app shows the number \(number) and polls until the link is confirmed.\n")
            async let user = app.client.wait(for: request, secondFactor: options.secondFactor)
            await app.answered("/connect/token")
            if let link = try await app.outbox.arrived(.link, to: options.email, since: before) {
                say("  the dev outbox has the link \(link)\n")
                try await HeadlessBrowser().confirm(link, number: number)
            } else if before == .noOutbox {
                say("Open the link from the mail to \(options.email) and type \(number).\n")
            } else {
                throw CommandFailure("no link came into the dev outbox: is there an account of \(options.email)?")
            }
            _ = try await user
            try await app.userInfo()
        }
    }
}
