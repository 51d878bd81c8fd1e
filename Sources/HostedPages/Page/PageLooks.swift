import Grants
import HTTPTypes
import Texts
import TokenEndpoint

/// Finds the look of a request's pages: language, texts, brand.
struct PageLooks: Sendable {
    let catalogue: TextCatalogue

    /// The look of no realm.
    var neutral: PageLook {
        let product = catalogue.texts(in: .english, replacedBy: [:])["address-title"]
        return PageLook(
            PageLook.Identity(realm: nil, version: 0, app: nil, language: .english), brand: Brand(), product: product,
            catalogue: catalogue)
    }

    /// - Parameter realm: with the settings of the App that the pages show.
    func look(_ realm: Realm, _ exchange: Exchange, uiLocales: [String] = []) -> PageLook {
        let identity = PageLook.Identity(
            realm: realm.id, version: realm.version, app: realm.app?.slug,
            language: exchange.language(of: realm, uiLocales: uiLocales))
        return PageLook(
            identity, brand: realm.brand,
            product: realm.brand.productName ?? realm.app?.displayName ?? realm.displayName, catalogue: catalogue)
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
