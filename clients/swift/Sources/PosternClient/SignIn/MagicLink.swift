import Foundation

/// The link of a mail: `https://HOST/magic-login?userId=…&token=…`.
struct MagicLink: Equatable {
    let userID: String
    let token: String

    /// `nil` if the URL is no such link of one of these origins.
    init?(_ url: URL, of origins: [Origin]) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: false), parts.user == nil,
            parts.percentEncodedPath == "/magic-login", let site = Origin(url),
            // The port does not count: behind a proxy the server does not know it.
            origins.contains(where: { $0.scheme == site.scheme && $0.host == site.host }),
            let userID = parts.only("userId"), let token = parts.only("token")
        else { return nil }
        self.userID = userID
        self.token = token
    }
}

extension URLComponents {
    /// The value of a member of the query that is there exactly once and not empty.
    func only(_ name: String) -> String? {
        let values = (queryItems ?? []).filter { $0.name == name }
        guard values.count == 1, let value = values[0].value, !value.isEmpty else { return nil }
        return value
    }
}
