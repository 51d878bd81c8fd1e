import HTTPTypes
import Texts
import TokenEndpoint

/// Makes pages: a template in the shared layout, under the headers that every page carries.
package struct PageRenderer: Sendable {
    private let library: TemplateLibrary

    /// - Throws: a parser error if a template in the binary is broken.
    package init() throws {
        library = try TemplateLibrary(Embedded.templates)
    }

    /// A page.
    /// - Parameters:
    ///   - step: `data-step` of its `main`.
    ///   - error: `data-error` of its `main`.
    ///   - title: the heading, which is also the title of the window.
    ///   - values: what the template shows beside the texts.
    ///   - hidesReferrer: for a page whose address holds a secret that another page must not learn.
    func page(
        _ template: String, step: String, error: String? = nil, title: String, _ values: [String: Any] = [:],
        look: PageLook, status: HTTPResponse.Status = .ok, hidesReferrer: Bool = false
    ) -> Answer {
        var all = look.values.merging(values) { $1 }
        all["step"] = step
        all["title"] = title
        if let error { all["error"] = error }
        var answer = Answer(status, headers: Self.headers)
        answer.headers[.referrerPolicy] = hidesReferrer ? "no-referrer" : "same-origin"
        // A template that is missing would be found by the tests: every one is rendered there.
        answer.body = Array((library.render(template, all) ?? "").utf8)
        return answer
    }

    /// No `form-action`: browsers apply it to every redirect that follows the form, also to the client's own.
    private static let headers: HTTPFields = [
        .contentType: "text/html; charset=utf-8",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
            + "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
        .xFrameOptions: "DENY",
        .permissionsPolicy: "publickey-credentials-get=(self), publickey-credentials-create=(self)",
        .xRobotsTag: "noindex",
    ]
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
    static let xFrameOptions = HTTPField.Name("X-Frame-Options")!
    static let permissionsPolicy = HTTPField.Name("Permissions-Policy")!
    static let xRobotsTag = HTTPField.Name("X-Robots-Tag")!
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
