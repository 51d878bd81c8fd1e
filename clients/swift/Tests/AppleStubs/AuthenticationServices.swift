// What the library uses of AuthenticationServices, without anything behind it.
import Foundation

@MainActor public final class ASPresentationAnchor: NSObject {}

public class ASAuthorizationRequest: NSObject {}
public protocol ASAuthorizationCredential {}
public class ASAuthorization: NSObject { public var credential: any ASAuthorizationCredential { fatalError() } }

public struct ASAuthorizationError: Error {
    public enum Code: Int { case canceled = 1001 }
    public var code: Code
}

public struct ASAuthorizationPublicKeyCredentialUserVerificationPreference: RawRepresentable, Sendable {
    public init(rawValue: String) { self.rawValue = rawValue }
    public var rawValue: String
}

public final class ASAuthorizationPlatformPublicKeyCredentialDescriptor: NSObject {
    public init(credentialID: Data) {}
}

public final class ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest: ASAuthorizationRequest {
    public var userVerificationPreference = ASAuthorizationPublicKeyCredentialUserVerificationPreference(rawValue: "")
    public var excludedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor]?
}

public final class ASAuthorizationPlatformPublicKeyCredentialAssertionRequest: ASAuthorizationRequest {
    public var userVerificationPreference = ASAuthorizationPublicKeyCredentialUserVerificationPreference(rawValue: "")
    public var allowedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor] = []
}

public final class ASAuthorizationPlatformPublicKeyCredentialProvider: NSObject {
    public init(relyingPartyIdentifier: String) {}
    public func createCredentialRegistrationRequest(
        challenge: Data, name: String, userID: Data
    ) -> ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest { fatalError() }
    public func createCredentialAssertionRequest(
        challenge: Data
    ) -> ASAuthorizationPlatformPublicKeyCredentialAssertionRequest { fatalError() }
}

public final class ASAuthorizationPlatformPublicKeyCredentialRegistration: NSObject, ASAuthorizationCredential {
    public var credentialID: Data { fatalError() }
    public var rawClientDataJSON: Data { fatalError() }
    public var rawAttestationObject: Data? { fatalError() }
}

public final class ASAuthorizationPlatformPublicKeyCredentialAssertion: NSObject, ASAuthorizationCredential {
    public var credentialID: Data { fatalError() }
    public var rawClientDataJSON: Data { fatalError() }
    public var rawAuthenticatorData: Data { fatalError() }
    public var signature: Data { fatalError() }
    public var userID: Data { fatalError() }
}

public protocol ASAuthorizationControllerDelegate: NSObjectProtocol {
    func authorizationController(
        controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization)
    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error)
}

public protocol ASAuthorizationControllerPresentationContextProviding: NSObjectProtocol {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor
}

public final class ASAuthorizationController: NSObject {
    public struct RequestOptions: OptionSet, Sendable {
        public init(rawValue: Int) { self.rawValue = rawValue }
        public let rawValue: Int
        public static let preferImmediatelyAvailableCredentials = RequestOptions(rawValue: 1)
    }
    public init(authorizationRequests: [ASAuthorizationRequest]) {}
    public weak var delegate: (any ASAuthorizationControllerDelegate)?
    public weak var presentationContextProvider: (any ASAuthorizationControllerPresentationContextProviding)?
    public func performRequests() {}
    public func performRequests(options: RequestOptions) {}
    public func performAutoFillAssistedRequests() {}
    public func cancel() {}
}

public struct ASWebAuthenticationSessionError: Error {
    public enum Code: Int { case canceledLogin = 1 }
    public var code: Code
}

public protocol ASWebAuthenticationPresentationContextProviding: NSObjectProtocol {
    func presentationAnchor(for session: ASWebAuthenticationSession) -> ASPresentationAnchor
}

public final class ASWebAuthenticationSession: NSObject {
    public final class Callback: NSObject {
        public static func https(host: String, path: String) -> Callback { fatalError() }
        public static func customScheme(_ scheme: String) -> Callback { fatalError() }
    }
    public init(url: URL, callback: Callback, completionHandler: @escaping (URL?, (any Error)?) -> Void) {}
    public init(url: URL, callbackURLScheme: String?, completionHandler: @escaping (URL?, (any Error)?) -> Void) {}
    public weak var presentationContextProvider: (any ASWebAuthenticationPresentationContextProviding)?
    public var prefersEphemeralWebBrowserSession = false
    public func start() -> Bool { fatalError() }
    public func cancel() {}
}
