import HTTPTypes
import Testing

@testable import TokenEndpoint

@Suite("Pages")
struct PageTemplateTests {
    private let page = PageTemplate("magic-login-result.html", style: "magic-login.css")

    @Test func `values are escaped and not looked at again`() {
        let html = String(
            decoding: page.answer(["realm": "<b>&\"{{heading}}</b>", "heading": "H", "text": "T", "tone": "good"]).body,
            as: UTF8.self)
        #expect(html.contains("&lt;b&gt;&amp;&quot;{{heading}}&lt;/b&gt;"))
        #expect(html.contains("<h1>H</h1>") && !html.contains("{{{"))
    }

    @Test func `the policy names the style that the page has`() throws {
        let answer = page.answer([:])
        let html = String(decoding: answer.body, as: UTF8.self)
        let style = try #require(html.firstRange(of: "<style>"))
        let end = try #require(html.firstRange(of: "</style>"))
        let hash = PageTemplate.hash(String(html[style.upperBound..<end.lowerBound]))
        #expect(answer.headers[.contentSecurityPolicy]?.contains("style-src '\(hash)'") == true)
    }
}
