import PosternClient
import SwiftUI

@main
struct GardenApp: App {
    private let model = Result { try Model(Settings.configuration()) }

    var body: some Scene {
        WindowGroup {
            switch model {
            case .success(let model): RootView(model: model)
            case .failure: Text("Settings.swift does not fit.")
            }
        }
    }
}

struct RootView: View {
    let model: Model

    var body: some View {
        NavigationStack {
            switch model.state {
            case .locked: ProgressView()
            case .signedOut: SignInView(model: model)
            case .signedIn(let user): AccountView(model: model, user: user)
            }
        }
        .task { await model.follow() }
        .onOpenURL { url in Task { await model.open(url) } }
    }
}

struct MessageView: View {
    let model: Model

    var body: some View {
        if let message = model.message {
            Text(message).foregroundStyle(.red)
        }
    }
}
