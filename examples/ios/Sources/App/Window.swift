import AuthenticationServices
import PosternClient
import UIKit

@MainActor
enum Window {
    static func anchor() -> ASPresentationAnchor {
        let scenes = UIApplication.shared.connectedScenes.compactMap { $0 as? UIWindowScene }
        return scenes.flatMap(\.windows).first { $0.isKeyWindow } ?? ASPresentationAnchor()
    }

    /// One object, so that a new request ends the one before.
    static let passkeys = SystemPasskeyDialog(anchor: anchor)
}
