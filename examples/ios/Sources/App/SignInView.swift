import PosternClient
import SwiftUI

struct SignInView: View {
    let model: Model
    @State private var email = ""
    @State private var code = ""
    @State private var totp = ""

    var body: some View {
        Form {
            switch model.waiting {
            case nil: address
            case .code(let request)?: typing(request)
            case .signIn(let request)?: showing(request)
            }
            MessageView(model: model)
        }
        .disabled(model.isBusy)
    }

    private var address: some View {
        Section {
            TextField("E-mail", text: $email)
                .textContentType(.username)
                .keyboardType(.emailAddress)
                .textInputAutocapitalization(.never)
            Button("Send a code") { Task { await model.requestCode(email: email) } }.disabled(email.isEmpty)
            Button("Send a link") { Task { await model.requestLink(email: email) } }.disabled(email.isEmpty)
            Button("Ask my other device") { Task { await model.requestApproval(email: email) } }.disabled(email.isEmpty)
            Button("Use a passkey") { Task { await model.signIn(with: Window.passkeys) } }
        }
    }

    private func typing(_ request: CodeRequest) -> some View {
        Section {
            TextField("Code", text: $code).textContentType(.oneTimeCode).keyboardType(.numberPad)
            if model.needsSecondFactor {
                TextField("Code of your authenticator app", text: $totp).keyboardType(.numberPad)
            }
            Button("Continue") { Task { await model.signIn(code: code, totp: totp) } }.disabled(code.isEmpty)
            again(from: request.resendAt)
        }
    }

    private func showing(_ request: PendingSignIn) -> some View {
        Section {
            Text(request.kind == .link ? "Open the link in your mail." : "Answer on your other device.")
            if let number = request.matchNumber {
                Text(number).font(.largeTitle)
                Text("Type this number there.")
            }
            if model.needsSecondFactor {
                TextField("Code of your authenticator app", text: $totp).keyboardType(.numberPad)
                Button("Continue") { Task { await model.wait(totp: totp) } }.disabled(totp.isEmpty)
            }
            again(from: request.resendAt)
        }
        .task(id: request.id) { await model.wait() }
    }

    @ViewBuilder
    private func again(from time: Date?) -> some View {
        if let time {
            Button("Send again") { Task { await model.sendAgain() } }
            Text("possible from \(time.formatted(date: .omitted, time: .standard)) on")
        }
        Button("Cancel", role: .cancel) { Task { await model.giveUp() } }
    }
}
