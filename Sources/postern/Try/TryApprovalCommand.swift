import ArgumentParser

/// `postern try approval`.
struct TryApprovalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approval",
        abstract:
            "Be a trusted device and an app that asks: add the device, ask, approve with the number, sign in by it.",
        discussion: """
            The client asks as a public one: admin.set_approvals(realm, true, public_clients => true). The key of the \
            device lives in this process and ends with it; the device is removed at the end. Where the account has \
            another device, the realm's probation must be 0.
            """)

    @OptionGroup var options: TryOptions

    func run() async throws {
        let key = ProofKey()
        let app = try HeadlessApp(options)
        let device = app.holding(key)
        say("1. Sign in by code: adding a device needs a sign-in of the last ten minutes.\n")
        let tokens = try await app.signInByCode()

        say("2. Add this device: the access token says whose it is, the proof which key.\n")
        let id = try await app.addDevice(key, tokens: tokens)

        say("3. Ask for an approval, as another app would, and poll.\n")
        let request = try await app.askForApproval()
        guard try await app.poll(request) == nil else { throw CommandFailure("approved without an answer") }

        say("4. Read the inbox with the key alone.\n")
        let item = try await device.inbox()

        say("5. Approve with the number that the asking app displays.\n")
        try await app.approve(item, number: request.match_number, with: key)

        say("6. Poll again: the tokens.\n")
        try await Task.sleep(for: .seconds(request.interval))
        guard let approved = try await app.poll(request) else { throw CommandFailure("the approval did not count") }
        try await app.userInfo(approved)

        say("7. Sign in by the device itself, without a code.\n")
        let own = try await device.token([
            ("grant_type", "urn:postern:device"), ("client_id", options.client), ("scope", options.scope),
        ])
        try await device.userInfo(own)

        say("8. Remove the device.\n")
        _ = try await device.exchange(.delete, "/connect/devices/\(id)")
    }
}
