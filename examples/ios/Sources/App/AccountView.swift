import PosternClient
import SwiftUI

struct AccountView: View {
    @Bindable var model: Model
    let user: User

    var body: some View {
        List {
            Section("You") {
                LabeledContent("Name", value: user.name ?? "")
                LabeledContent("E-mail", value: model.details?.email ?? user.email ?? "")
                Button("Add a passkey") { Task { await model.addPasskey(with: Window.passkeys) } }
            }
            Section("Sessions") {
                ForEach(model.sessions) { session in
                    LabeledContent(session.userAgent ?? "Unknown", value: session.isCurrent ? "this one" : "")
                        .swipeActions { Button("End", role: .destructive) { Task { await model.end(session) } } }
                }
            }
            Section("Approvals") {
                if model.device == nil {
                    Button("Trust this device") { Task { await model.trustThisDevice() } }
                } else {
                    ForEach(model.approvals) { ApprovalView(model: model, approval: $0) }
                    Text("Requests to sign you in appear here.").task { await model.followApprovals() }
                }
            }
            Section {
                Button("Sign out") { Task { await model.signOut() } }
                Button("Delete my account", role: .destructive) { Task { await model.deleteAccount() } }
            }
            MessageView(model: model)
        }
        .disabled(model.isBusy)
        .task { await model.load() }
        .sheet(isPresented: $model.wantsStepUp) { StepUpView(model: model) }
    }
}

/// One request; the person types the number that the other screen shows.
struct ApprovalView: View {
    let model: Model
    let approval: TrustedDevice.Approval
    @State private var number = ""

    var body: some View {
        Group {
            Text("\(approval.clientName ?? approval.clientID) asks to sign you in.")
            Text("\(approval.bindingMessage ?? "") \(approval.source ?? "") \(approval.createdAt.formatted())")
            if approval.needsNumber { TextField("Number that it shows", text: $number).keyboardType(.numberPad) }
            Button("It was me") { answer(.approve(number: approval.needsNumber ? number : nil)) }
            Button("Not now") { answer(.deny) }
            Button("This was not me", role: .destructive) { answer(.report) }
        }
    }

    private func answer(_ decision: TrustedDevice.Decision) { Task { await model.answer(approval, decision) } }
}

struct StepUpView: View {
    let model: Model
    @State private var code = ""

    var body: some View {
        Form {
            Text("Please confirm that it is you.")
            Button("Use a passkey") { Task { await model.confirm(by: .passkey(Window.passkeys)) } }
            if let request = model.stepUpCode {
                TextField("Code", text: $code).textContentType(.oneTimeCode).keyboardType(.numberPad)
                Button("Continue") { Task { await model.confirm(by: .code(code, for: request)) } }
            } else {
                Button("Send a code") { Task { await model.requestStepUpCode() } }
            }
            MessageView(model: model)
        }
        .disabled(model.isBusy)
    }
}
