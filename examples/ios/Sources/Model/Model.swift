import Foundation
import Observation
import PosternClient

/// What the screens show and do. It imports nothing that only Apple has, so it also runs on Linux.
@MainActor @Observable
final class Model {
    let client: PosternClient
    private(set) var state = SessionState.locked
    /// The request whose code is to be typed, or whose link or approval is awaited.
    private(set) var waiting: Pending?
    private(set) var needsSecondFactor = false
    private(set) var isBusy = false
    private(set) var message: String?

    private(set) var details: Account.Details?
    private(set) var sessions: [Account.Session] = []
    private(set) var device: TrustedDevice.Info?
    private(set) var approvals: [TrustedDevice.Approval] = []

    /// Whether the user has to confirm that it is them.
    var wantsStepUp = false
    private(set) var stepUpCode: CodeRequest?
    @ObservationIgnored private var challenge: StepUpChallenge?
    @ObservationIgnored private var interrupted: (@MainActor () async throws -> Void)?

    init(_ configuration: PosternConfiguration) throws { client = try PosternClient(configuration) }

    /// Runs as long as the app does.
    func follow() async {
        for await state in client.states {
            self.state = state
            if case .signedIn = state { continue }
            (details, sessions, device, approvals, wantsStepUp) = (nil, [], nil, [], false)
            // iOS may have ended the app while the user looked for the code.
            waiting = try? await client.pending.last
        }
    }

    func requestCode(email: String) async {
        await run { self.waiting = .code(try await self.client.requestCode(to: .email(email))) }
    }

    func requestLink(email: String) async {
        await run { self.waiting = .signIn(try await self.client.requestLink(to: .email(email))) }
    }

    func requestApproval(email: String) async {
        await run { self.waiting = .signIn(try await self.client.requestApproval(of: email)) }
    }

    func sendAgain() async {
        await run {
            switch self.waiting {
            case .code(let request)?: self.waiting = .code(try await self.client.resend(request))
            case .signIn(let request)?: self.waiting = .signIn(try await self.client.resend(request))
            case nil: break
            }
        }
    }

    func signIn(code: String, totp: String) async {
        guard case .code(let request)? = waiting else { return }
        await run {
            _ = try await self.client.signIn(code: code, for: request, secondFactor: Self.factor(totp))
            self.signedIn()
        }
    }

    /// Returns when the link was confirmed, the approval given, or the task cancelled.
    func wait(totp: String = "") async {
        guard case .signIn(let request)? = waiting else { return }
        await attempt {
            _ = try await self.client.wait(for: request, secondFactor: Self.factor(totp))
            self.signedIn()
        }
    }

    func open(_ url: URL) async {
        await attempt { if try await self.client.open(url) != nil { self.signedIn() } }
    }

    func signIn(with dialog: any PasskeyDialog) async {
        await run {
            _ = try await self.client.signIn(with: dialog)
            self.signedIn()
        }
    }

    func giveUp() async {
        guard let waiting else { return }
        await attempt { try await self.client.forget(waiting) }
        signedIn()
    }

    private func signedIn() { (waiting, needsSecondFactor, message) = (nil, false, nil) }

    private static func factor(_ totp: String) -> SecondFactor? { totp.isEmpty ? nil : .totp(totp) }

    func load() async {
        await run {
            self.details = try await self.client.account.load()
            self.sessions = try await self.client.account.sessions()
            self.device = try await self.client.device.info()
        }
    }

    func end(_ session: Account.Session) async {
        await run {
            try await self.client.account.end(session: session.id)
            self.sessions.removeAll { $0.id == session.id }
        }
    }

    func addPasskey(with dialog: any PasskeyDialog) async {
        await run { _ = try await self.client.account.addPasskey(with: dialog) }
    }

    func deleteAccount() async { await run { try await self.client.account.delete() } }

    func signOut() async { await run { try await self.client.signOut() } }

    func trustThisDevice() async { await run { self.device = try await self.client.device.enrol() } }

    /// While the list is shown.
    func followApprovals() async {
        await attempt { for try await inbox in self.client.device.inbox { self.approvals = inbox.approvals } }
    }

    func answer(_ approval: TrustedDevice.Approval, _ decision: TrustedDevice.Decision) async {
        await run {
            defer { self.approvals.removeAll { $0.id == approval.id } }
            try await self.client.device.answer(approval, decision)
        }
    }

    func requestStepUpCode() async {
        await run {
            guard let email = try await self.client.account.load().email else { return }
            self.stepUpCode = try await self.client.requestCode(to: .email(email))
        }
    }

    /// Signs in again, then does what the user wanted.
    func confirm(by method: StepUpMethod) async {
        guard let challenge else { return }
        await run {
            _ = try await self.client.stepUp(challenge, by: method)
            (self.wantsStepUp, self.stepUpCode) = (false, nil)
            try await self.interrupted?()
        }
    }

    /// Runs what a button starts. Buttons are disabled meanwhile.
    private func run(_ action: @escaping @MainActor () async throws -> Void) async {
        isBusy = true
        message = nil
        await attempt(action)
        isBusy = false
    }

    private func attempt(_ action: @escaping @MainActor () async throws -> Void) async {
        do {
            try await action()
        } catch PosternError.stepUpNeeded(let challenge) {
            (wantsStepUp, self.challenge, interrupted) = (true, challenge, action)
        } catch let error as PosternError {
            show(error)
        } catch {
            message = "Something went wrong."
        }
    }

    private func show(_ error: PosternError) {
        switch error {
        case .secondFactorNeeded: (needsSecondFactor, message) = (true, "Enter the code of your authenticator app.")
        case .secondFactorWrong: message = "This code of the authenticator app is not valid. Wait for the next one."
        case .wrongCode: message = "This code is not valid, or no longer."
        case .denied, .expired: (waiting, message) = (nil, "The request was refused, or took too long. Begin again.")
        case .foreignLink: message = "Open this link on the device where you asked for it."
        case .rateLimited(let wait): message = "Too many tries. Try again in \(Int((wait / 60).rounded(.up))) min."
        case .unavailable: message = "No connection. Try again."
        case .cancelled, .signedOut: break
        default: message = "Something went wrong."
        }
    }
}
