#if canImport(AuthenticationServices) && !os(watchOS) && !os(tvOS)
    import AuthenticationServices
    import Foundation

    /// Pages in the system's own sheet, which shares the session of the person's browser. An `https` redirect URI, of the
    /// associated domain `webcredentials:HOST`, needs iOS 17.4, macOS 14.4 or visionOS 1.1; a private scheme does not.
    @MainActor
    public final class SystemWebSession: PageBrowser {
        /// - Parameters:
        ///   - anchor: the window that shows the sheet.
        ///   - ephemeral: without the cookies of the browser, and without the question whether to use them.
        public init(anchor: @escaping @MainActor () -> ASPresentationAnchor, ephemeral: Bool = false) {
            self.anchor = Anchor(anchor)
            self.ephemeral = ephemeral
        }

        private let anchor: Anchor
        private let ephemeral: Bool

        /// The same.
        public func redirect(for registered: URL) async throws -> URL { registered }

        /// Shows the page until it leads to the redirect URI.
        public func open(_ page: URL, until redirect: URL) async throws -> URL {
            let running = Running()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    running.caller = continuation
                    do {
                        let session = try session(page, redirect) { url, error in
                            let outcome = Self.outcome(url, error)
                            Task { @MainActor in running.finish(outcome) }
                        }
                        session.presentationContextProvider = anchor
                        session.prefersEphemeralWebBrowserSession = ephemeral
                        running.session = session
                        if Task.isCancelled || !session.start() { running.finish(.failure(DialogCancelled())) }
                    } catch {
                        running.finish(.failure(error))
                    }
                }
            } onCancel: {
                Task { @MainActor in running.session?.cancel() }
            }
        }

        private func session(
            _ page: URL, _ redirect: URL, _ completion: @escaping @Sendable (URL?, (any Error)?) -> Void
        ) throws -> ASWebAuthenticationSession {
            let scheme = redirect.scheme ?? ""
            if #available(iOS 17.4, macOS 14.4, visionOS 1.1, *) {
                let callback: ASWebAuthenticationSession.Callback =
                    if scheme == "https", let host = redirect.host {
                        .https(host: host, path: redirect.path.isEmpty ? "/" : redirect.path)
                    } else {
                        .customScheme(scheme)
                    }
                return ASWebAuthenticationSession(url: page, callback: callback, completionHandler: completion)
            }
            guard scheme != "https" else {
                throw PosternError.misuse("an https redirect URI needs iOS 17.4; register a private scheme as well")
            }
            return ASWebAuthenticationSession(url: page, callbackURLScheme: scheme, completionHandler: completion)
        }

        private nonisolated static func outcome(_ url: URL?, _ error: (any Error)?) -> Result<URL, any Error> {
            if let url { return .success(url) }
            let isCancelled = (error as? ASWebAuthenticationSessionError)?.code == .canceledLogin
            return .failure(isCancelled ? DialogCancelled() : error ?? DialogCancelled())
        }

        /// The session keeps no strong reference to what gives it a window.
        @MainActor
        private final class Anchor: NSObject, @preconcurrency ASWebAuthenticationPresentationContextProviding {
            private let anchor: @MainActor () -> ASPresentationAnchor
            init(_ anchor: @escaping @MainActor () -> ASPresentationAnchor) { self.anchor = anchor }
            func presentationAnchor(for session: ASWebAuthenticationSession) -> ASPresentationAnchor { anchor() }
        }

        /// The session, and the callers that wait for it.
        @MainActor
        private final class Running {
            var session: ASWebAuthenticationSession?
            var caller: CheckedContinuation<URL, any Error>?

            /// The system may tell twice that it cannot begin.
            func finish(_ outcome: Result<URL, any Error>) {
                caller?.resume(with: outcome)
                caller = nil
            }
        }
    }
#endif
