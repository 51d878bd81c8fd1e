import Foundation
import Observation
import PosternClient

/// Does with the model of examples/ios what its screens do: a line of input is a call, and what the screens would show then
/// is printed as a line of JSON.
@main @MainActor
struct GardenDriver {
    static func main() async throws {
        guard let origin = URL(string: CommandLine.arguments[1]) else { return }
        var configuration = PosternConfiguration(origin: origin, clientID: CommandLine.arguments[2])
        configuration.scopes = ["openid", "offline_access", "profile", "email"]
        configuration.store = MemoryStore()
        let model = try Model(configuration)
        Task { await model.follow() }
        await until { model.state != .locked }
        for await line in lines() {
            let words = line.split(separator: " ").map(String.init)
            await call(words[0], words.count > 1 ? words[1] : "", model)
            show(model)
        }
    }

    private static func call(_ name: String, _ argument: String, _ model: Model) async {
        switch name {
        case "requestCode": await model.requestCode(email: argument)
        case "requestLink": await model.requestLink(email: argument)
        case "requestApproval": await model.requestApproval(email: argument)
        case "signIn": await model.signIn(code: argument, totp: "")
        case "open": if let url = URL(string: argument) { await model.open(url) }
        case "giveUp": await model.giveUp()
        case "load": await model.load()
        case "trustThisDevice": await model.trustThisDevice()
        case "followApprovals":
            Task { await model.followApprovals() }
            await until { !model.approvals.isEmpty }
        case "approve":
            if let approval = model.approvals.first { await model.answer(approval, .approve(number: argument)) }
        case "wait": await model.wait()
        case "requestStepUpCode": await model.requestStepUpCode()
        case "confirm":
            if let request = model.stepUpCode { await model.confirm(by: .code(argument, for: request)) }
        case "deleteAccount": await model.deleteAccount()
        case "signOut": await model.signOut()
        default: break
        }
        // The state comes by a stream of its own.
        let state = await model.client.state
        await until { model.state == state }
    }

    private static func show(_ model: Model) {
        var shown: [String: Any] = [
            "sessions": model.sessions.count, "trusted": model.device != nil, "approvals": model.approvals.count,
            "wantsStepUp": model.wantsStepUp, "isWaiting": model.waiting != nil, "isBusy": model.isBusy,
        ]
        shown["message"] = model.message
        shown["email"] = model.details?.email
        if case .signedIn(let user) = model.state { shown["user"] = user.id }
        if case .signIn(let request)? = model.waiting { shown["number"] = request.matchNumber }
        guard let json = try? JSONSerialization.data(withJSONObject: shown) else { return }
        FileHandle.standardOutput.write(json + Data("\n".utf8))
    }

    /// As a screen does: looks again when something that was looked at has changed.
    private static func until(_ condition: @escaping @MainActor () -> Bool) async {
        while !condition() {
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = condition()
                } onChange: {
                    continuation.resume()
                }
            }
            await Task.yield()
        }
    }

    private static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
