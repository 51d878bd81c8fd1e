import Grants
import HTTPTypes
import Texts
import TokenEndpoint

/// Finds the look of a request's pages: language, texts, brand.
struct PageLooks: Sendable {
    let catalogue: TextCatalogue
    /// The style sheets of a brand.
    let names: @Sendable (Brand) -> AssetNames

    /// The look of no realm.
    var neutral: PageLook {
        let texts = catalogue.texts(in: .english, replacedBy: [:])
        return PageLook(texts: texts, brand: Brand(), product: texts["address-title"], assets: names(Brand()))
    }

    /// - Parameter realm: with the settings of the App that the pages show.
    func look(_ realm: Realm, _ exchange: Exchange, uiLocales: [String] = []) -> PageLook {
        let language = exchange.language(of: realm, uiLocales: uiLocales)
        let product = realm.brand.productName ?? realm.app?.displayName ?? realm.displayName
        let texts = catalogue.texts(in: language, replacedBy: realm.brand.texts[language.tag] ?? [:])
        return PageLook(
            texts: texts.filling(["product": product, "client": product]), brand: realm.brand, product: product,
            assets: names(realm.brand))
    }
}

extension Exchange {
    /// The language of a page and of the messages that it causes.
    func language(of realm: Realm, uiLocales: [String]) -> Language {
        Language.choose(
            uiLocales: uiLocales, accepted: request.headers[.acceptLanguage],
            default: Language(tag: realm.hosted.defaultLocale) ?? .english)
    }
}
