import HTTPTypes

/// What is answered at hosts that no realm has.
package struct OtherHosts: Sendable {
    /// The answer at a host, canonical, that is none of a realm; `nil` when it is unknown here, too.
    let site: @Sendable (_ request: Request, _ host: String) async -> Answer?
    /// The answer at a host that is unknown.
    let unknown: @Sendable (Request) async -> Answer

    /// There is nothing at any other host.
    package init(
        site: @escaping @Sendable (Request, String) async -> Answer? = { _, _ in nil },
        unknown: @escaping @Sendable (Request) async -> Answer = { _ in Answer(.notFound) }
    ) {
        self.site = site
        self.unknown = unknown
    }
}
