/// What a migration does to tables that exist before it, as `scripts/migration-facts` measured it on a database with
/// rows in every table.
struct MigrationFacts: Sendable, Equatable {
    /// A table that it locks so that others wait, or works on.
    struct Use: Sendable, Equatable {
        let table: String
        /// The strongest lock, as in SQL; held until the migration ends.
        let lock: String
        /// Such as "reads all rows", "builds index x", "rewrites the table".
        let work: [String]

        /// Who waits for it.
        var waits: String {
            switch lock {
            case "ACCESS EXCLUSIVE": "readers and writers wait"
            case "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE": "writers wait"
            default: "no other statement waits"
            }
        }

        var isWaitedFor: Bool { ["ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"].contains(lock) }
    }
    var uses: [Use] = []
    /// What is new.
    var expands: [String] = []
    /// What is taken away, or required from now on.
    var contracts: [String] = []

    /// Facts by the names of migrations. A line has the migration, its kind, and what belongs to that, apart by tabs.
    static func parse(_ text: String) -> [String: MigrationFacts] {
        var facts: [String: MigrationFacts] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard fields.count >= 2 else { continue }
            var found = facts[fields[0]] ?? MigrationFacts()
            switch (fields[1], fields.count) {
            case ("uses", 5):
                let work = fields[4].split(separator: ";").map(String.init)
                found.uses.append(Use(table: fields[2], lock: fields[3], work: work))
            case ("expands", 3): found.expands.append(fields[2])
            case ("contracts", 3): found.contracts.append(fields[2])
            default: break
            }
            facts[fields[0]] = found
        }
        return facts
    }

    /// Of the migrations that are part of this binary.
    static let embedded = parse(Embedded.facts.map(\.text).joined(separator: "\n"))
}
