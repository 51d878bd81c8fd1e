import ArgumentParser

/// `postern try magic`.
struct TryMagicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "magic",
        abstract: "Ask for a link, poll, type the number on the link's page, sign in by polling, read userinfo.",
        discussion: "The link is read from the dev outbox; without one, open it from the mail while the app polls.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        let app = try HeadlessApp(options)
        let tokens = try await app.signInByLink()
        try await app.userInfo(tokens)
    }
}
