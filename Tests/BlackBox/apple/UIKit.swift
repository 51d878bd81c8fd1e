// What the pages and examples use of UIKit, without anything behind it.
import AuthenticationServices
import Foundation

public typealias UIWindow = ASPresentationAnchor

extension ASPresentationAnchor { @MainActor public var isKeyWindow: Bool { fatalError() } }

@MainActor open class UIScene: NSObject {}
@MainActor open class UIWindowScene: UIScene { public var windows: [UIWindow] { fatalError() } }

@MainActor public final class UIApplication: NSObject {
    public static var shared: UIApplication { fatalError() }
    public var connectedScenes: Set<UIScene> { fatalError() }
}
