import ArgumentParser
import SoftwareAuthenticator

/// `postern try passkey`.
struct TryPasskeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkey",
        abstract: "Sign in by code, enrol a passkey, sign in with it, list, delete.",
        discussion: "The authenticator is software: the private key lives in this process and ends with it.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        let authenticator = try SoftwareAuthenticator()
        let app = try HeadlessApp(options)
        say("1. Sign in by code: enrolment needs a sign-in of the last ten minutes.\n")
        let byCode = try await app.signInByCode()

        say("2. Enrol a passkey.\n")
        let passkey = try await app.enrol(with: authenticator, tokens: byCode)

        say("3. Sign in with the passkey alone.\n")
        let byPasskey = try await app.signIn(with: authenticator, passkey)

        say("4. List: it is there.\n")
        guard try await app.passkeys(byPasskey).contains(where: { $0.Id == passkey.id }) else {
            throw CommandFailure("the new passkey is not in the list")
        }

        say("5. Delete it.\n")
        try await app.delete(passkey, tokens: byPasskey)
        guard try await !app.passkeys(byPasskey).contains(where: { $0.Id == passkey.id }) else {
            throw CommandFailure("the deleted passkey is still in the list")
        }
        say("Enrolled, signed in with, listed and deleted passkey \(passkey.id) for \(passkey.credential.rpId).")
    }
}
