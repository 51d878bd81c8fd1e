#if canImport(AuthenticationServices) && !os(watchOS) && !os(tvOS)
    import AuthenticationServices
    import Foundation

    /// The passkey dialog of iOS, macOS and visionOS. The app needs the associated domain `webcredentials:RP-ID`.
    ///
    /// It shows one request at a time. A call while another one waits, such as the button beside a field with
    /// ``PasskeyStyle/autofill``, ends that one first: it throws ``PosternError/cancelled``.
    @MainActor
    public final class SystemPasskeyDialog: PasskeyDialog {
        /// - Parameter anchor: the window that shows the dialog.
        public init(anchor: @escaping @MainActor () -> ASPresentationAnchor) { self.anchor = anchor }

        private let anchor: @MainActor () -> ASPresentationAnchor
        private var present: PasskeyCall?

        /// Makes a passkey on this device or in its keychain.
        public func create(_ options: Data) async throws -> Data {
            guard let options = PasskeyOptions(creation: options), let user = options.user else {
                throw PosternError.misuse("these are no PublicKeyCredentialCreationOptionsJSON")
            }
            let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: options.rpID)
            let request = provider.createCredentialRegistrationRequest(
                challenge: options.challenge, name: user.name, userID: user.id)
            request.userVerificationPreference = .init(rawValue: options.verification)
            if #available(iOS 17.4, macOS 13.5, visionOS 1.1, *) {
                request.excludedCredentials = options.credentials.map { .init(credentialID: $0) }
            }
            return try await perform(request, .dialog)
        }

        /// Asks for a passkey.
        public func get(_ options: Data, style: PasskeyStyle) async throws -> Data {
            guard let options = PasskeyOptions(request: options) else {
                throw PosternError.misuse("these are no PublicKeyCredentialRequestOptionsJSON")
            }
            let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: options.rpID)
            let request = provider.createCredentialAssertionRequest(challenge: options.challenge)
            request.userVerificationPreference = .init(rawValue: options.verification)
            request.allowedCredentials = options.credentials.map { .init(credentialID: $0) }
            return try await perform(request, style)
        }

        /// Ends a request with ``PasskeyStyle/autofill``, such as when its screen disappears.
        public func cancelAutofill() {
            if present?.style == .autofill { present?.cancel() }
        }

        private func perform(_ request: ASAuthorizationRequest, _ style: PasskeyStyle) async throws -> Data {
            // Its end comes later, and the system takes no other request before.
            while let former = present { await former.cancelAndWait() }
            let call = PasskeyCall(request, style, anchor)
            present = call
            defer { present = nil }
            return try await call.perform()
        }
    }

    /// One call of the system's dialog.
    @MainActor
    private final class PasskeyCall: NSObject {
        let style: PasskeyStyle
        private let controller: ASAuthorizationController
        private let anchor: @MainActor () -> ASPresentationAnchor
        private var caller: CheckedContinuation<Data, any Error>?
        private var followers: [CheckedContinuation<Void, Never>] = []

        init(
            _ request: ASAuthorizationRequest, _ style: PasskeyStyle,
            _ anchor: @escaping @MainActor () -> ASPresentationAnchor
        ) {
            self.style = style
            self.anchor = anchor
            controller = ASAuthorizationController(authorizationRequests: [request])
            super.init()
            controller.delegate = self
            controller.presentationContextProvider = self
        }

        /// The document of what the system gave.
        func perform() async throws -> Data {
            defer {
                for follower in followers { follower.resume() }
                followers = []
            }
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation {
                    caller = $0
                    if Task.isCancelled { finish(.failure(DialogCancelled())) } else { start() }
                }
            } onCancel: {
                Task { @MainActor in self.cancel() }
            }
        }

        func cancel() { controller.cancel() }

        func cancelAndWait() async {
            await withCheckedContinuation {
                followers.append($0)
                cancel()
            }
        }

        private func start() {
            #if os(macOS)
                controller.performRequests()
            #else
                switch style {
                case .dialog: controller.performRequests()
                case .onlyLocal: controller.performRequests(options: .preferImmediatelyAvailableCredentials)
                case .autofill: controller.performAutoFillAssistedRequests()
                }
            #endif
        }

        private func finish(_ outcome: Result<Data, any Error>) {
            caller?.resume(with: outcome)
            caller = nil
        }
    }

    // Not every SDK says that these are called on the main thread.
    extension PasskeyCall: @preconcurrency ASAuthorizationControllerDelegate {
        func authorizationController(
            controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization
        ) {
            // The system's own object stays on this thread.
            switch authorization.credential {
            case let made as ASAuthorizationPlatformPublicKeyCredentialRegistration:
                finish(
                    .success(
                        PasskeyDocument.registration(
                            id: made.credentialID, clientData: made.rawClientDataJSON,
                            attestation: made.rawAttestationObject ?? Data())))
            case let used as ASAuthorizationPlatformPublicKeyCredentialAssertion:
                finish(
                    .success(
                        PasskeyDocument.assertion(
                            id: used.credentialID, clientData: used.rawClientDataJSON,
                            authenticatorData: used.rawAuthenticatorData, signature: used.signature, user: used.userID))
                )
            default: finish(.failure(DialogCancelled()))
            }
        }

        func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error) {
            let isCancelled = (error as? ASAuthorizationError)?.code == .canceled
            finish(.failure(isCancelled ? DialogCancelled() : error))
        }
    }

    extension PasskeyCall: @preconcurrency ASAuthorizationControllerPresentationContextProviding {
        func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor { anchor() }
    }
#endif
