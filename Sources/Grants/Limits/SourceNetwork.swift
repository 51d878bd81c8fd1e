/// IPv6 sources are counted by /64, and by their /48 with sixteen times the permits: a provider gives a customer
/// either.
///
/// Works on the texts that the HTTP layer makes of addresses (`a:b:c:d:0:0:0:0/64`), so that every policy counts alike.
enum SourceNetwork {
    /// How many times the permits of a source its /48 has.
    static let factor = 16

    private static let narrow = "/64"
    private static let wide = "/48"

    /// The subjects, and after a source that is an IPv6 /64 the /48 that it is part of.
    static func counted(_ subjects: [RateLimiter.Subject]) -> [RateLimiter.Subject] {
        guard let index = subjects.firstIndex(where: { $0.dimension == .source && $0.value.hasSuffix(narrow) }) else {
            return subjects
        }
        guard let network = network(of: subjects[index].value) else { return subjects }
        var counted = subjects
        counted.insert(.init(.source, network), at: index + 1)
        return counted
    }

    /// The largest network that is one source: the /48 of an IPv6 /64, any other source itself.
    static func whole(_ source: String) -> String {
        source.hasSuffix(narrow) ? network(of: source) ?? source : source
    }

    private static func network(of source: String) -> String? {
        let groups = source.split(separator: ":")
        return groups.count == 8 ? groups[..<3].joined(separator: ":") + ":0:0:0:0:0" + wide : nil
    }

    /// The limit that applies to a subject, given the limit configured for its dimension.
    static func limit(_ limit: RateLimit?, of subject: RateLimiter.Subject) -> RateLimit? {
        guard let limit, subject.dimension == .source, subject.value.hasSuffix(wide) else { return limit }
        return RateLimit(
            permits: limit.permits * factor, per: limit.per, burst: limit.burst * factor, enforced: limit.enforced)
    }
}
