import Texts

/// What a passkey is called that was made on a page, so that its owner can tell it from another: where it is kept, or
/// else the browser, and when it was made.
enum PasskeyName {
    /// The longest name of a passkey, in characters.
    static let maximum = 64

    /// - Parameters:
    ///   - model: the product that keeps it; `nil` where it is not known.
    ///   - time: seconds since the epoch.
    static func text(model: String?, userAgent: String?, time: Double, _ texts: Texts) -> String {
        let place = model ?? userAgent.flatMap(browser) ?? texts["undo-passkey"]
        return String("\(place), \(texts.time(time))".prefix(maximum))
    }

    /// `Chrome (Windows)`; `nil` for a browser that is not known. For people to read: any program can claim a name.
    static func browser(_ userAgent: String) -> String? {
        // Each also calls itself one of those below it.
        let browsers = [
            ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser", "Samsung Internet"), ("Firefox", "Firefox"),
            ("FxiOS", "Firefox"), ("CriOS", "Chrome"), ("Chrome", "Chrome"), ("Safari", "Safari"),
        ]
        let systems = [
            ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"),
            ("CrOS", "ChromeOS"), ("Macintosh", "Mac"), ("Linux", "Linux"),
        ]
        func first(of names: [(mark: String, name: String)]) -> String? {
            names.first { userAgent.contains($0.mark) }?.name
        }
        guard let browser = first(of: browsers) else { return nil }
        return first(of: systems).map { "\(browser) (\($0))" } ?? browser
    }
}
