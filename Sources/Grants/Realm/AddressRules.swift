/// Which e-mail domains a realm and its Apps accept (`admin.put_address_rule`).
public struct AddressRules: Sendable, Equatable {
    /// One domain, exact or `*.` and a domain: its sub-domains.
    struct Rule: Sendable, Equatable {
        /// `nil`: of the whole realm.
        let app: String?
        let domain: String
        let allows: Bool

        fileprivate func fits(_ domain: String) -> Bool {
            self.domain.hasPrefix("*.") ? domain.hasSuffix(self.domain.dropFirst()) : domain == self.domain
        }
    }

    let rules: [Rule]

    init(_ rules: [Rule] = []) {
        self.rules = rules
    }

    /// Whether an address (its key) may be sent anything on the host of an App, or of the realm.
    ///
    /// The rule of the longest domain decides, an App's before the realm's. Where none fits, a list of allowed domains
    /// refuses: the App's if it has rules, else the realm's.
    public func accept(_ address: String, app: String?) -> Bool {
        guard !rules.isEmpty else { return true }
        let domain = address.lastIndex(of: "@").map { String(address[address.index(after: $0)...]) } ?? address
        let own = app.map { app in rules.filter { $0.app == app } } ?? []
        let realms = rules.filter { $0.app == nil }
        for list in [own, realms] {
            if let rule = list.filter({ $0.fits(domain) }).max(by: { $0.domain.utf8.count < $1.domain.utf8.count }) {
                return rule.allows
            }
        }
        return !(own.isEmpty ? realms : own).contains(where: \.allows)
    }
}
