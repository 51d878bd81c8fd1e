import Foundation
import FoundationNetworking
import PosternClient

/// A browser without a screen. It fills in the pages of a sign-in with an address and the code that is sent there, and
/// prints what it is shown.
actor HeadlessBrowser: PageBrowser {
    /// What it does on the pages of a sign-in.
    struct Person {
        /// An e-mail address, or a number as it may be typed.
        let address: String
        /// The code, if it is known before it was sent.
        let code: String?
        let outbox: DevOutboxReader
    }

    private let person: Person?
    private let transport = URLSessionTransport()
    private var cookies: [String: String] = [:]

    /// - Parameter person: without one it is only good for ``confirm(_:number:)``.
    init(_ person: Person? = nil) { self.person = person }

    /// With some port, as apps listen on any (RFC 8252 §7.3). Nothing listens on this one: the browser stops there.
    func redirect(for registered: URL) async throws -> URL {
        var parts = URLComponents(url: registered, resolvingAgainstBaseURL: true)
        parts?.port = 8765
        return parts?.url ?? registered
    }

    /// Fills in page after page until the browser is sent back to the app.
    func open(_ page: URL, until redirect: URL) async throws -> URL {
        guard let person else { throw DialogCancelled() }
        let before = try await person.outbox.newest(.code, to: person.address)
        var shown = try await visit(URLRequest(url: page), until: redirect)
        for _ in 0..<10 {
            guard case .page(let url, let page) = shown else { break }
            if let fault = page.fault {
                throw PosternError.refused(code: fault, description: "on the page \"\(page.step)\"", status: 200)
            }
            let form: [(String, String)] =
                switch page.step {
                case "address": [("address", person.address), ("action", "continue")]
                case "code": [("code", try await code(person, before)), ("action", "continue")]
                case "continue-as": [("action", "continue")]
                case "consent": [("action", "allow")]
                case "offer-passkey": [("action", "skip")]
                default:
                    throw PosternError.misuse(
                        "the page \"\(page.step)\" wants more than an address and a code: "
                            + "leave out --email and --phone, and sign in with your own browser")
                }
            var request = URLRequest(posting: [("tx", page.transaction)] + form, to: url)
            request.setValue("same-origin", forHTTPHeaderField: "Sec-Fetch-Site")
            shown = try await visit(request, until: redirect)
        }
        guard case .redirect(let url) = shown else { throw PosternError.misuse("the pages do not come to an end") }
        return url
    }

    private func code(_ person: Person, _ before: DevOutboxReader.Newest) async throws -> String {
        try await person.outbox.code(given: person.code, sentTo: person.address, since: before)
    }

    private enum Shown {
        case page(URL, SignInPage)
        case redirect(URL)
    }

    /// Opens a page, or submits its form, and follows where that leads on the server.
    private func visit(_ first: URLRequest, until redirect: URL) async throws -> Shown {
        var request = first
        for _ in 0..<5 {
            guard let url = request.url else { break }
            say("> \(request.httpMethod ?? "GET") \(url.target)")
            if let body = request.httpBody {
                // The transaction is long, and new on each page.
                say("> tx=…&\(String(decoding: body, as: UTF8.self).drop { $0 != "&" }.dropFirst())")
            }
            let (body, response) = try await load(request)
            guard let location = response.value(forHTTPHeaderField: "Location") else {
                let page = SignInPage(String(decoding: body, as: UTF8.self))
                let fault = page.fault.map { ", which says \($0)" } ?? ""
                say("< \(response.statusCode)\n< the page \"\(page.step)\"\(fault)\n")
                guard response.statusCode == 200 else {
                    throw PosternError.refused(
                        code: page.fault ?? "", description: nil, status: response.statusCode)
                }
                return .page(URL(string: "/sign-in", relativeTo: url)?.absoluteURL ?? url, page)
            }
            say("< \(response.statusCode)\n< Location: \(location)\n")
            guard let next = URL(string: location, relativeTo: url)?.absoluteURL else { break }
            if location.hasPrefix(redirect.absoluteString) { return .redirect(next) }
            guard next.scheme == url.scheme, next.host == url.host, next.port == url.port else {
                throw PosternError.misuse("the pages led to \(location)")
            }
            request = URLRequest(url: next)
        }
        throw PosternError.misuse("the server redirects in a circle")
    }

    /// Sends a request with the cookies that there are, and keeps those that come.
    func load(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        var request = request
        if !cookies.isEmpty {
            let pairs = cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            request.setValue(pairs.joined(separator: "; "), forHTTPHeaderField: "Cookie")
        }
        let (body, response) = try await transport.send(request)
        if let url = request.url, let fields = response.allHeaderFields as? [String: String] {
            for cookie in HTTPCookie.cookies(withResponseHeaderFields: fields, for: url) {
                cookies[cookie.name] = cookie.value
            }
        }
        return (body, response)
    }
}

/// What a page of the sign-in says to programs.
private struct SignInPage {
    let step: String
    let fault: String?
    let transaction: String

    init(_ text: String) {
        step = Self.value(after: "data-step=\"", in: text) ?? ""
        fault = Self.value(after: "data-error=\"", in: text)
        transaction = Self.value(after: "name=\"tx\" value=\"", in: text) ?? ""
    }

    private static func value(after mark: String, in page: String) -> String? {
        guard let start = page.firstRange(of: mark)?.upperBound else { return nil }
        return String(page[start...].prefix { $0 != "\"" })
    }
}

extension URL {
    /// Path and query.
    var target: String {
        let parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        return (parts?.percentEncodedPath ?? "") + (parts?.percentEncodedQuery.map { "?\($0)" } ?? "")
    }
}
