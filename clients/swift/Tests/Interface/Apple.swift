// What apps may rely on, on Apple's platforms alone. Tests/AppleStubs/typecheck compiles it with the library.
import AuthenticationServices
import Foundation

@MainActor func apple(_ anchor: @escaping @MainActor () -> ASPresentationAnchor) -> [any Sendable] {
    let stores: [any SessionStore] = [
        KeychainStore(), KeychainStore(accessGroup: "group"), KeychainStore(accessGroup: "group", name: "name"),
    ]
    let dialog = SystemPasskeyDialog(anchor: anchor)
    dialog.cancelAutofill()
    let dialogs: [any PasskeyDialog] = [dialog]
    let browsers: [any PageBrowser] = [
        SystemWebSession(anchor: anchor), SystemWebSession(anchor: anchor, ephemeral: true),
    ]
    return [stores, dialogs, browsers]
}
