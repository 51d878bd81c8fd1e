import ArgumentParser
import Foundation
import Persistence

/// What the commands that move a realm and remove its rows have in common.
struct RealmOptions: ParsableArguments {
    @Argument(help: "The realm's slug.")
    var realm: String

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    /// - Returns: the slug, the cluster of that name, and the realm in every cluster that has rows of it.
    func find(_ cluster: String) async throws -> (String, ClusterSettings, [PlacedRealms.Placed]) {
        let settings = try await Settings(file: config)
        let named = try ClusterSettings.named(cluster, of: settings.clusters)
        return (realm, named, try await PlacedRealms.all(settings).filter { $0.realm.slug == realm })
    }
}

/// `postern realm move`.
struct RealmMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move a realm to another PostgreSQL cluster while it is served.",
        discussion: """
            Copies the realm by logical replication, lets writes to it wait for less than a second, changes over, and \
            compares the rows of both clusters. No sign-in fails and no session ends. The old rows stay, closed, until \
            postern realm clear removes them. After an interruption run it again at once: it goes on where it was, or \
            begins the copy anew. \
            Every node must know both clusters (POSTERN_CLUSTERS) before. \
            Needs superusers of both clusters: POSTERN_MIGRATE_DATABASE_URL and POSTERN_MIGRATE_DATABASE_URL_NAME; \
            wal_level = logical in the one that the realm leaves; and that the other one's PostgreSQL can connect to \
            it, by the same URL or by POSTERN_REPLICATION_URL (_NAME).
            """)

    @OptionGroup var options: RealmOptions

    @Option(name: .long, help: "The name of the cluster to move it to.")
    var to: String

    @Flag(name: .long, help: "End a move that has not changed over: the realm stays, and what was copied is removed.")
    var abandon = false

    func run() async throws {
        let (realm, target, found) = try await options.find(to)
        guard !found.isEmpty else {
            throw CommandFailure("realm \(realm) does not exist: postern realm list shows all")
        }
        // Where a move to this cluster begins, also one that an earlier run did not finish.
        let source =
            found.first {
                ["leaving", "left"].contains($0.realm.placement) && $0.realm.peer == to && !$0.realm.isVerified
            }
            ?? found.first { $0.realm.placement == "here" }
        guard let source else {
            throw CommandFailure(
                "realm \(realm) is in another move: \(found.map { "\($0.cluster.name) \($0.realm.placement)" })")
        }
        guard source.cluster.name != to else { throw CommandFailure("\(to) serves realm \(realm) already") }
        guard !found.contains(where: { $0.cluster.name == to && $0.realm.placement == "left" }) else {
            throw CommandFailure(
                "\(to) has rows of realm \(realm) from before: postern realm clear \(realm) --at \(to)")
        }
        let move = RealmMove(
            source.realm, from: .init(name: source.cluster.name, conninfo: try source.cluster.migrateDatabaseURL()),
            to: .init(name: to, conninfo: try target.migrateDatabaseURL()),
            replication: try source.cluster.replicationURL(), progress: { say($0) })
        do {
            if abandon {
                try await move.abandon()
                return say("Realm \(realm) stays in \(source.cluster.name).")
            }
            let outcome = try await move.run()
            let pause = outcome.pause.map { "; writes waited \($0.formatted(.units(allowed: [.milliseconds])))" }
            say("Realm \(realm) is served by \(to); \(outcome.rows) rows are equal\(pause ?? "").")
            let old = source.cluster.name
            say("Its rows in \(old) are closed: postern realm clear \(realm) --at \(old)")
        } catch let error as StatementFailure {
            throw CommandFailure(error.description)
        }
    }
}

/// `postern realm clear`.
struct RealmClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove the rows of a realm from a cluster that it has left.",
        discussion: """
            In batches, while the cluster serves other realms. Refused while the cluster serves the realm, and unless \
            the move found the rows of both clusters to be equal. Needs a superuser, as postern realm move does.
            """)

    @OptionGroup var options: RealmOptions

    @Option(name: .long, help: "The name of the cluster that it has left.")
    var at: String

    @Flag(name: .long, help: "Also when the rows were not compared, because the move was interrupted at its end.")
    var unverified = false

    func run() async throws {
        let (realm, place, found) = try await options.find(at)
        guard let left = found.first(where: { $0.cluster.name == at && $0.realm.placement == "left" }) else {
            throw CommandFailure("realm \(realm) has no closed rows in \(at): postern realm list shows where it is")
        }
        let serving = ["here", "leaving"]
        guard found.contains(where: { $0.realm.id == left.realm.id && serving.contains($0.realm.placement) }) else {
            throw CommandFailure("no other cluster serves realm \(realm): run postern realm move again")
        }
        do {
            let rows = try await RealmMove.clear(
                left.realm, at: .init(name: at, conninfo: try place.migrateDatabaseURL()), unverified: unverified,
                progress: { say($0) })
            say("\(rows) rows of realm \(realm) are removed from \(at).")
        } catch let error as StatementFailure {
            throw CommandFailure(error.description)
        }
    }
}
