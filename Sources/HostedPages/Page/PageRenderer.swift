import Grants
import HTTPTypes
import Texts
import TokenEndpoint

/// Makes pages: a template in the shared layout, under the headers that every page carries.
package struct PageRenderer: Sendable {
    private let library: TemplateLibrary
    /// The style sheets of a brand.
    private let assets: @Sendable (Brand) -> AssetNames
    private let shells = PageShells()
    private let marker = SlotMarker()

    /// - Parameter assets: the style sheets of a brand.
    /// - Throws: a parser error if a template in the binary is broken.
    init(assets: @escaping @Sendable (Brand) -> AssetNames) throws {
        library = try TemplateLibrary(Embedded.templates)
        self.assets = assets
    }

    /// A page.
    /// - Parameters:
    ///   - step: `data-step` of its `main`.
    ///   - error: `data-error` of its `main`.
    ///   - title: the heading, which is also the title of the window: the key of its text.
    ///   - values: what the template shows beside the texts.
    ///   - hidesReferrer: for a page whose address holds a secret that another page must not learn.
    func page(
        _ template: String, step: String, error: String? = nil, title: String, _ values: PageValues = [:],
        look: PageLook, status: HTTPResponse.Status = .ok, hidesReferrer: Bool = false
    ) -> Answer {
        let key = PageShells.Key(
            template: template, step: step, error: error, title: title, look: look.identity,
            fills: look.fills.map(\.name), shape: values.shape)
        let shell = shells.shell(key) { render(key, look, slots: values.slots.count) }
        var answer = Answer(status, headers: Self.headers)
        answer.headers[.referrerPolicy] = hidesReferrer ? "no-referrer" : "same-origin"
        let slots = values.slots
        answer.body = shell.page { slot in
            slot < slots.count ? slots[slot] : Texts.filler(look.fills[slot - slots.count].value)
        }
        return answer
    }

    /// Renders a page with markers for its slots: those of its values, then those of the texts' placeholders.
    private func render(_ key: PageShells.Key, _ look: PageLook, slots: Int) -> PageShell {
        let texts = look.texts(filledBy: { marker.text(slots + $0) })
        var slot = 0
        var all = look.values(texts, assets(look.brand)).merging(values(of: key.shape, texts, &slot)) { $1 }
        all["step"] = key.step
        all["title"] = texts[key.title]
        if let error = key.error { all["error"] = error }
        // A template that is missing would be found by the tests: every one is rendered there.
        return PageShell(library.render(key.template, all) ?? "", marker)
    }

    /// - Parameter slot: the number of the next slot.
    private func values(of shape: [PageValues.Member], _ texts: Texts, _ slot: inout Int) -> [String: Any] {
        var values: [String: Any] = [:]
        for member in shape {
            switch member.kind {
            case .slot:
                values[member.name] = marker.text(slot)
                slot += 1
            case .text(let key): values[member.name] = texts[key]
            case .flag(let flag): values[member.name] = flag
            case .rows(let rows): values[member.name] = rows.map { self.values(of: $0, texts, &slot) }
            }
        }
        return values
    }

    /// No `form-action`: browsers apply it to every redirect that follows the form, also to the client's own.
    private static let headers: HTTPFields = [
        .contentType: "text/html; charset=utf-8",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
            + "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
        .xFrameOptions: "DENY",
        .permissionsPolicy: "publickey-credentials-get=(self), publickey-credentials-create=(self)",
        .xRobotsTag: "noindex",
        // No page of another site embeds ours. Without Cross-Origin-Opener-Policy: an app that opens the sign-in in a
        // window hears of its end by that window.
        .crossOriginResourcePolicy: "same-origin",
    ]
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
    static let xFrameOptions = HTTPField.Name("X-Frame-Options")!
    static let permissionsPolicy = HTTPField.Name("Permissions-Policy")!
    static let xRobotsTag = HTTPField.Name("X-Robots-Tag")!
    static let crossOriginResourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy")!
    static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
