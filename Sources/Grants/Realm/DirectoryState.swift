import Persistence

/// What a ``RealmDirectory`` knows, and since when. A value without clock or database.
struct DirectoryState {
    typealias Instant = ContinuousClock.Instant

    /// Names the state in which a load began. A load whose ticket is no longer valid may have read data from before a
    /// change.
    struct Ticket: Equatable, CustomStringConvertible {
        fileprivate let epoch: Int
        fileprivate let changes: Int
        var description: String { "\(epoch).\(changes)" }
    }

    private struct Loaded<Value> {
        let value: Value
        /// When the load began.
        let at: Instant
    }

    /// The oldest a snapshot may be.
    static let maximumAge = Duration.seconds(1)
    /// How long an outage may last for ``remembered(forHost:at:)``.
    static let memory = Duration.seconds(3600)

    /// What ``versions`` add up to, as the heartbeat writes it.
    private(set) var stamp: String?
    /// How many realms ``versions`` counts and the sum of their versions, `nil` before the first comparison.
    var known: (realms: Int, version: Int64)? {
        versions.map { ($0.count, $0.values.reduce(0, &+)) }
    }
    /// Whether the versions are being asked for.
    var isComparing = false

    /// Rises with every comparison and clearing: a load that began before one is not kept.
    private var epoch = 0
    /// Counts the notifications.
    private var changes = 0
    /// The last notification of a realm since the last comparison.
    private var changeOfRealm: [UUIDValue: Int] = [:]
    /// Realms that changed since the hosts were read, with the number of the change.
    private var changedSinceHosts: [UUIDValue: Int] = [:]
    private var versions: [UUIDValue: Int64]?
    /// Until when the last confirmation holds.
    private var confirmedUntil: Instant?
    /// How many changes were known when the load of ``hosts`` began.
    private var hostsAsOf = 0
    private var hosts: Loaded<[String: ClaimedHost]>?
    private var realms: [UUIDValue: Loaded<Realm?>] = [:]
    /// The last snapshots that no change has superseded, for ``remembered(forHost:at:)``.
    private var lastRealms: [UUIDValue: Realm] = [:]
    private var lastHosts: [String: ClaimedHost] = [:]
    private var lastHeardAt: Instant?

    // MARK: Reading

    /// The hosts, if they may be used.
    func hosts(at now: Instant) -> [String: ClaimedHost]? { fresh(hosts, at: now) }

    /// Whether the hosts were ever read.
    private(set) var hasHeardHosts = false

    /// Whose a host was when its cluster was last heard, however long ago.
    func lastClaim(ofHost host: String) -> ClaimedHost? { lastHosts[host] }

    /// Whether a realm had left its cluster when that was last heard.
    func hadLeft(_ id: UUIDValue) -> Bool { lastRealms[id]?.hasLeft == true }

    /// Whose a host is: `nil` when that is not known, `.some(nil)` when it is no realm's.
    func claim(ofHost host: String, at now: Instant) -> ClaimedHost?? {
        guard let hosts = hosts(at: now) else { return nil }
        // Each `nil` of a conditional expression would be the inner one here.
        guard let claim = hosts[host] else {
            guard changedSinceHosts.isEmpty else { return nil }
            return .some(nil)
        }
        guard changedSinceHosts[claim.realm] == nil else { return nil }
        return claim
    }

    /// A realm's snapshot: `nil` when there is none that may be used, `.some(nil)` when the realm is gone or disabled.
    func realm(_ id: UUIDValue, at now: Instant) -> Realm?? { fresh(realms[id], at: now) }

    /// The realm of a host as it was when the database was last heard, up to an hour ago.
    func remembered(forHost host: String, at now: Instant) -> Realm? {
        guard let lastHeardAt, now < lastHeardAt + Self.memory else { return nil }
        return lastHosts[host].flatMap { lastRealms[$0.realm] }
    }

    private func fresh<Value>(_ loaded: Loaded<Value>?, at now: Instant) -> Value? {
        guard let loaded else { return nil }
        let isConfirmed = confirmedUntil.map { now < $0 } ?? false
        guard isConfirmed || now < loaded.at + Self.maximumAge else { return nil }
        return loaded.value
    }

    // MARK: Loading

    var ticketForHosts: Ticket { Ticket(epoch: epoch, changes: changes) }

    func ticket(for id: UUIDValue) -> Ticket { Ticket(epoch: epoch, changes: changeOfRealm[id] ?? 0) }

    mutating func keep(_ realm: Realm?, of id: UUIDValue, _ ticket: Ticket, loadedAt now: Instant) {
        guard ticket == self.ticket(for: id) else { return }
        realms[id] = Loaded(value: realm, at: now)
        lastRealms[id] = realm
        heard(at: now)
    }

    mutating func keep(_ hosts: [String: ClaimedHost], _ ticket: Ticket, loadedAt now: Instant) {
        // A load that began earlier may end later: what it read does not replace what was read after it.
        guard ticket.epoch == epoch, ticket.changes >= hostsAsOf else { return }
        hostsAsOf = ticket.changes
        self.hosts = Loaded(value: hosts, at: now)
        lastHosts = hosts
        hasHeardHosts = true
        heard(at: now)
        changedSinceHosts = changedSinceHosts.filter { $0.value > ticket.changes }
    }

    // MARK: Changing

    /// Nothing has changed.
    mutating func confirm(until instant: Instant) {
        confirmedUntil = max(confirmedUntil ?? instant, instant)
        heard(at: instant)
    }

    private mutating func heard(at instant: Instant) {
        lastHeardAt = max(lastHeardAt ?? instant, instant)
    }

    /// One realm has changed.
    mutating func changed(_ id: UUIDValue) {
        changes += 1
        changeOfRealm[id] = changes
        changedSinceHosts[id] = changes
        realms[id] = nil
        lastRealms[id] = nil
    }

    /// Takes the versions of all realms as read at `instant` or later. Snapshots with an equal version are confirmed,
    /// the others are dropped.
    mutating func take(_ new: [UUIDValue: Int64], asOf instant: Instant) {
        epoch += 1
        changeOfRealm = [:]
        if let old = versions {
            changes += 1
            for (id, version) in new where old[id] != version { changedSinceHosts[id] = changes }
            for id in old.keys where new[id] == nil { changedSinceHosts[id] = changes }
        } else {
            hosts = nil
            changedSinceHosts = [:]
        }
        realms = realms.filter { id, loaded in
            guard let realm = loaded.value else { return changedSinceHosts[id] == nil && versions != nil }
            return new[id] == Int64(realm.version)
        }
        lastRealms = lastRealms.filter { id, realm in new[id] == Int64(realm.version) }
        versions = new
        stamp = known.map { "\($0.realms):\($0.version)" }
        confirmedUntil = max(confirmedUntil ?? instant, instant + Self.maximumAge)
    }

    /// Forgets everything but what ``remembered(forHost:at:)`` answers.
    mutating func clear() {
        epoch += 1
        stamp = nil
        versions = nil
        changeOfRealm = [:]
        changedSinceHosts = [:]
        confirmedUntil = nil
        hosts = nil
        realms.removeAll(keepingCapacity: true)
    }
}
