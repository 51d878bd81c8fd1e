import Delivery
import Foundation

extension HeadlessApp {
    /// What a browser keeps, and the page that it shows.
    fileprivate struct Browser {
        var cookies: [String: String] = [:]
        var step = ""
        var fault: String?
        var tx = ""
        /// Where it was sent that is not the server's own.
        var leftFor: String?
    }

    /// Fills in the pages of an authorization request with the address of the options.
    /// - Returns: the members of the answer at the redirect URI.
    func signInOnPages(_ request: HostedRequest) async throws -> [String: String] {
        let before = try await newestCodeMail()
        var browser = Browser()
        try await visit(request.path, &browser)
        for _ in 0..<10 {
            if let url = browser.leftFor {
                guard url.hasPrefix(request.redirectURI) else { throw CommandFailure("the pages led to \(url)") }
                return HostedRequest.members(of: url)
            }
            if let fault = browser.fault { throw CommandFailure("the page \(browser.step) says \(fault)") }
            let form: [(String, String)] =
                switch browser.step {
                case "address": [("address", options.email), ("action", "continue")]
                case "code": [("code", try await code(after: before)), ("action", "continue")]
                case "continue-as": [("action", "continue")]
                case "consent": [("action", "allow")]
                case "offer-passkey": [("action", "skip")]
                default: throw CommandFailure("the page \(browser.step) wants more than an address and a code")
                }
            try await visit("/sign-in", form: form, &browser)
        }
        throw CommandFailure("the pages do not come to an end")
    }

    /// Opens a page, or submits its form, and follows where that leads on the server.
    private func visit(_ path: String, form: [(String, String)]? = nil, _ browser: inout Browser) async throws {
        var path = path
        var form = form
        browser.fault = nil
        for _ in 0..<5 {
            var request = HTTPClient.Request(url: options.url + path)
            request.headers.append(("Sec-Fetch-Site", "same-origin"))
            if !browser.cookies.isEmpty {
                let cookies = browser.cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
                request.headers.append(("Cookie", cookies.joined(separator: "; ")))
            }
            if let form { request.carry(form: [("tx", browser.tx)] + form) }
            say("> \(form == nil ? "GET" : "POST") \(path)")
            if let form { say("> tx=…&\(Self.encode(form))") }
            let answer = try await execute(request)
            for cookie in answer.values(of: "Set-Cookie") { browser.keep(cookie) }
            guard let location = answer.values(of: "Location").first else {
                let page = String(decoding: answer.body, as: UTF8.self)
                browser.step = Self.value(after: "data-step=\"", in: page) ?? ""
                browser.fault = Self.value(after: "data-error=\"", in: page)
                browser.tx = Self.value(after: "name=\"tx\" value=\"", in: page) ?? ""
                let says = browser.fault.map { ", which says \($0)" } ?? ""
                say("< \(answer.line)\n< the page \"\(browser.step)\"\(says)\n")
                guard answer.status == 200 else { throw CommandFailure("the server answered \(answer.status)") }
                return
            }
            say("< \(answer.line)\n< Location: \(location)\n")
            if location.hasPrefix(options.url + "/") {
                path = String(location.dropFirst(options.url.count))
            } else if location.hasPrefix("/") {
                path = location
            } else {
                browser.leftFor = location
                return
            }
            form = nil
        }
        throw CommandFailure("the server redirects in a circle")
    }

    private static func value(after mark: String, in page: String) -> String? {
        guard let start = page.firstRange(of: mark)?.upperBound else { return nil }
        return String(page[start...].prefix { $0 != "\"" })
    }
}

extension HeadlessApp.Browser {
    /// Keeps the name and value of `Set-Cookie`.
    fileprivate mutating func keep(_ header: String) {
        let pair = header.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1).map(String.init)
        if pair.count == 2 { cookies[pair[0]] = pair[1] }
    }
}
