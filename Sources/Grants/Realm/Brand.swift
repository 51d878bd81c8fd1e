/// The look of a realm's or App's pages and mails (`admin.set_branding`, `admin.put_text`).
public struct Brand: Sendable, Equatable {
    /// The name in place of the realm's or App's.
    public var productName: String?
    /// SHA-256 of the logo, in hexadecimal.
    public var logo: String?
    /// SHA-256 of the logo on dark pages.
    public var logoDark: String?
    /// SHA-256 of the icon.
    public var favicon: String?
    /// `#rrggbb` on light pages.
    public var accent: String?
    /// `#rrggbb` on dark pages.
    public var accentDark: String?
    /// A link to the terms.
    public var termsURI: String?
    /// A link to the privacy policy.
    public var privacyURI: String?
    /// A link to help.
    public var supportURI: String?
    /// The sender of mails.
    public var mailFrom: String?
    /// Where answers to mails go.
    public var mailReplyTo: String?
    /// Texts in place of the product's: by language tag, then by key.
    public var texts: [String: [String: String]] = [:]

    /// The product's own look.
    public init() {}

    /// The look of an App, or of the realm: the App's setting, else the realm's.
    init(_ brands: [BrandRecord], _ texts: [TextRecord], app: String?) {
        let realm = brands.first { $0.app == nil }
        let own = app == nil ? nil : brands.first { $0.app == app }
        productName = own?.productName ?? (app == nil ? realm?.productName : nil)
        logo = own?.logo ?? realm?.logo
        logoDark = own?.logoDark ?? (own?.logo == nil ? realm?.logoDark : nil)
        favicon = own?.favicon ?? realm?.favicon
        accent = own?.accent ?? realm?.accent
        accentDark = own?.accentDark ?? (own?.accent == nil ? realm?.accentDark : nil)
        termsURI = own?.termsUri ?? realm?.termsUri
        privacyURI = own?.privacyUri ?? realm?.privacyUri
        supportURI = own?.supportUri ?? realm?.supportUri
        mailFrom = own?.mailFrom ?? realm?.mailFrom
        mailReplyTo = own?.mailReplyTo ?? realm?.mailReplyTo
        for text in texts.filter({ $0.app == nil }) + texts.filter({ app != nil && $0.app == app }) {
            self.texts[text.locale, default: [:]][text.key] = text.value
        }
    }
}

/// A row of `branding`, as `postern.brands_config` gives it.
struct BrandRecord: Decodable {
    let app: String?
    let productName: String?
    let logo: String?
    let logoDark: String?
    let favicon: String?
    let accent: String?
    let accentDark: String?
    let termsUri: String?
    let privacyUri: String?
    let supportUri: String?
    let mailFrom: String?
    let mailReplyTo: String?
}

/// A row of `text_override`, as `postern.texts_config` gives it.
struct TextRecord: Decodable {
    let app: String?
    let locale: String
    let key: String
    let value: String
}
