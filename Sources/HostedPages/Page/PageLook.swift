import Grants
package import Texts

/// What every page of a request shares: language, texts and brand.
package struct PageLook: Sendable {
    let texts: Texts
    let brand: Brand
    /// The name on top of the page.
    let product: String
    /// Names of the assets of this look.
    let assets: AssetNames

    /// Values of the layout.
    var values: [String: Any] {
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

    /// The look with values for the placeholders of its texts.
    func filling(_ values: [String: String]) -> PageLook {
        PageLook(texts: texts.filling(values), brand: brand, product: product, assets: assets)
    }
}

/// Names of style sheets, as pages refer to them.
struct AssetNames: Sendable, Equatable {
    /// The style of every page.
    let base: String
    /// The colours of a brand; `nil` for the product's own.
    let accent: String?
}
