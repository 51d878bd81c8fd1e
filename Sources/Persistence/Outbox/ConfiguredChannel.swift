/// The enabled providers of one channel of a realm; for `postern doctor`.
public struct ConfiguredChannel: Sendable {
    /// The tenant.
    public let realm: UUIDValue
    /// Its slug.
    public let realmSlug: String
    /// Its name for people.
    public let realmName: String
    /// The channel.
    public let channel: Channel
    /// The realm's host.
    public let pageHost: String?
    /// In order.
    public let providers: [Provider]
    /// Seconds since the epoch, by the database clock.
    let now: Double
}
