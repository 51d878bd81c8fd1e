import ArgumentParser
import PosternClient

/// `postern try passkey`.
struct TryPasskeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkey",
        abstract: "Sign in by code, enrol a passkey, sign in with it, list, delete.",
        discussion: "The authenticator is software: the private key lives in this process and ends with it.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        try await explaining {
            let dialog = try SoftwarePasskeyDialog()
            let app = try HeadlessApp(options)
            let account = app.client.account
            say("1. Sign in by code: enrolment needs a sign-in of the last ten minutes.\n")
            try await app.signInByCode(options)

            say("2. Enrol a passkey.\n")
            let passkey = try await account.addPasskey(with: dialog, named: "Headless app")

            say("3. Sign in with the passkey alone. The session of the code is revoked: an app has one.\n")
            _ = try await app.client.signIn(with: dialog)
            await app.answered("/connect/revoke")

            say("4. List: it is there.\n")
            guard try await account.passkeys().contains(where: { $0.id == passkey }) else {
                throw CommandFailure("the new passkey is not in the list")
            }

            say("5. Delete it.\n")
            try await account.remove(passkey: passkey)
            guard try await !account.passkeys().contains(where: { $0.id == passkey }) else {
                throw CommandFailure("the deleted passkey is still in the list")
            }
            say("Enrolled, signed in with, listed and deleted passkey \(passkey).")
        }
    }
}
