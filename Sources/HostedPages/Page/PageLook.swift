import Grants
import Persistence
import Texts

/// What every page of a request shares: language, texts and brand.
package struct PageLook: Sendable {
    /// What the look follows from.
    struct Identity: Hashable {
        /// `nil` for the look of no realm.
        let realm: UUIDValue?
        let version: Int
        let app: String?
        let language: Language
    }

    /// A placeholder of texts with its value.
    struct Fill: Sendable {
        let name: String
        let value: String
    }

    let identity: Identity
    let brand: Brand
    /// The name on top of the page.
    let product: String
    private let catalogue: TextCatalogue
    /// Values of placeholders in texts. `{client}` is the product's name on pages without a client.
    private(set) var fills: [Fill]

    init(_ identity: Identity, brand: Brand, product: String, catalogue: TextCatalogue) {
        self.identity = identity
        self.brand = brand
        self.product = product
        self.catalogue = catalogue
        fills = [Fill(name: "product", value: product), Fill(name: "client", value: product)]
    }

    /// The texts, for what a template cannot name.
    var texts: Texts {
        texts(filledBy: { fills[$0].value })
    }

    /// The texts with other values for the placeholders, by their place in ``fills``.
    func texts(filledBy value: (Int) -> String) -> Texts {
        catalogue.texts(in: identity.language, replacedBy: brand.texts[identity.language.tag] ?? [:]).filling(
            Dictionary(fills.indices.map { (fills[$0].name, value($0)) }) { $1 })
    }

    /// The look with values for the placeholders of its texts.
    func filling(_ values: KeyValuePairs<String, String>) -> PageLook {
        var look = self
        for (name, value) in values {
            look.fills.removeAll { $0.name == name }
            look.fills.append(Fill(name: name, value: value))
        }
        return look
    }

    /// Values of the layout.
    func values(_ texts: Texts, _ assets: AssetNames) -> [String: Any] {
        var values: [String: Any] = [
            "t": texts, "lang": texts.language.tag, "dir": texts.language.direction, "product": product,
            "base": assets.base,
        ]
        if let accent = assets.accent { values["accent"] = accent }
        let links: [(key: String, uri: String?)] = [
            ("terms", brand.termsURI), ("privacy", brand.privacyURI), ("help", brand.supportURI),
        ]
        let shown = links.compactMap { link in link.uri.map { ["uri": $0, "text": texts[link.key]] } }
        if !shown.isEmpty { values["footer"] = ["links": shown] }
        if let logo = brand.logo { values["logo"] = logo }
        if let logo = brand.logoDark { values["logoDark"] = logo }
        if let icon = brand.favicon { values["favicon"] = icon }
        return values
    }
}

/// Names of style sheets, as pages refer to them.
struct AssetNames: Sendable, Equatable {
    /// The style of every page.
    let base: String
    /// The colours of a brand; `nil` for the product's own.
    let accent: String?
}
