import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a protected resource asks for with 401 `insufficient_user_authentication` (RFC 9470 §3).
public struct StepUpChallenge: Sendable, Hashable {
    /// `acr_values`, in their order; one of them has to be reached.
    public let levels: [String]
    /// `max_age`: how old the sign-in may be, in seconds.
    public let maxAge: Int?

    /// `nil` if the answer asks for no such thing.
    public init?(_ response: HTTPURLResponse) {
        guard response.statusCode == 401, let field = response.value(forHTTPHeaderField: "WWW-Authenticate"),
            let challenge = AuthenticationChallenge.all(in: field).first(where: {
                $0.parameters["error"] == "insufficient_user_authentication"
            })
        else { return nil }
        levels = challenge.parameters["acr_values"]?.split(separator: " ").map(String.init) ?? []
        maxAge = challenge.parameters["max_age"].flatMap(Self.seconds)
    }

    package init(levels: [String], maxAge: Int?) {
        self.levels = levels
        self.maxAge = maxAge
    }

    /// Digits alone. Any other text asks for no age.
    private static func seconds(_ text: String) -> Int? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(text) : nil
    }
}

/// How a step-up is done.
public enum StepUpMethod: Sendable {
    /// By a code that was asked for with ``PosternClient/requestCode(to:names:)``.
    case code(String, for: CodeRequest, SecondFactor? = nil)
    /// By a passkey.
    case passkey(any PasskeyDialog)
    /// On the pages.
    case pages(any PageBrowser)
}

extension StepUpMethod: Discreet {
    /// The kind of the method.
    public var shown: [(String, any Sendable)] {
        switch self {
        case .code: [("kind", "code")]
        case .passkey: [("kind", "passkey")]
        case .pages: [("kind", "pages")]
        }
    }
}
