import Foundation

/// The head of a request that came to the port of a ``LoopbackBrowser``.
struct LoopbackRequest {
    let target: String
    private let host: String?

    /// `nil` unless it is the head of a `GET` (RFC 9112 §2.1).
    init?(_ head: Data) {
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let words = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == "GET", words[1].hasPrefix("/"), words[2].hasPrefix("HTTP/1.") else {
            return nil
        }
        target = String(words[1])
        let hosts = lines.dropFirst().filter { $0.lowercased().hasPrefix("host:") }
        host = hosts.count == 1 ? hosts[0].dropFirst(5).trimmingCharacters(in: .whitespaces) : nil
    }

    /// Whether the browser comes back to the redirect URI with an answer. Another `Host` is a page of some other site,
    /// whose name leads here; another `state` is somebody who knocks at every port.
    /// - Parameter state: of the page that was shown; `nil` if it has none.
    func answers(_ redirect: URL, _ state: String?) -> Bool {
        guard let host, host == "\(redirect.host ?? ""):\(redirect.port ?? 0)",
            let parts = URLComponents(string: "http://\(host)\(target)")
        else { return false }
        let path = redirect.path.isEmpty ? "/" : redirect.path
        return parts.path == path
            && parts.queryItems?.contains { $0.name == "state" && (state == nil || $0.value == state) } == true
    }

    /// What the person sees.
    static let done = answer("200 OK", "<!doctype html><title>Done</title><p>Done. You can close this window.</p>")
    static let notFound = answer("404 Not Found", "")

    private static func answer(_ status: String, _ page: String) -> String {
        """
        HTTP/1.1 \(status)\r
        Content-Type: text/html; charset=utf-8\r
        Content-Length: \(page.utf8.count)\r
        Cache-Control: no-store\r
        Content-Security-Policy: default-src 'none'\r
        Referrer-Policy: no-referrer\r
        Connection: close\r
        \r
        \(page)
        """
    }
}
