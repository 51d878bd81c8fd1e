import ArgumentParser
import PosternClient

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
        try await explaining {
            let network = PrintingTransport()
            let phone = try HeadlessApp(options, over: network)
            let device = phone.client.device
            let other = try HeadlessApp(options, over: network)
            say("1. Sign in by code: adding a device needs a sign-in of the last ten minutes.\n")
            try await phone.signInByCode(options)

            say("2. Add this device: the access token says whose it is, the proof which key.\n")
            _ = try await device.enrol(named: "Headless device")

            say("3. Ask for an approval, as another app would, and poll.\n")
            let request = try await other.client.requestApproval(of: options.email)
            async let user = other.client.wait(for: request, secondFactor: options.secondFactor)
            await other.answered("/connect/token")

            say("4. Read the inbox with the key alone.\n")
            let approval = try await Self.newest(in: device)

            say("5. Approve with the number that the asking app displays.\n")
            try await device.answer(approval, .approve(number: request.matchNumber))

            say("6. Poll again: the tokens.\n")
            _ = try await user
            try await other.userInfo()

            say("7. Sign in by the device itself, without a code.\n")
            _ = try await phone.client.signInAsTrustedDevice()
            await phone.answered("/connect/revoke")
            try await phone.userInfo()

            say("8. Remove the device.\n")
            try await device.remove()
        }
    }

    /// The newest request that waits for an answer; at most half a minute is waited for it.
    private static func newest(in device: TrustedDevice) async throws -> TrustedDevice.Approval {
        try await withThrowingTaskGroup(of: TrustedDevice.Approval?.self) { tasks in
            tasks.addTask {
                for try await inbox in device.inbox {
                    if let approval = inbox.approvals.last { return approval }
                    if let end = inbox.probationUntil {
                        throw CommandFailure("the device is on probation until \(end), and may answer nothing")
                    }
                    if let end = inbox.quietUntil {
                        throw CommandFailure("the user refused requests lately: none is shown until \(end)")
                    }
                }
                return nil
            }
            tasks.addTask {
                try await Task.sleep(for: .seconds(30))
                return nil
            }
            defer { tasks.cancelAll() }
            guard let approval = try await tasks.next() ?? nil else { throw CommandFailure("no request came") }
            return approval
        }
    }
}
