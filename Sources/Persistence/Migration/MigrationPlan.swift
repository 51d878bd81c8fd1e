/// What a binary brings, checked for sense, and what is missing of it given what a database has.
struct MigrationPlan: Sendable {
    /// By number.
    let migrations: [(version: Int32, file: SQLFile)]
    /// By path: those of `0_base` first.
    let functions: [SQLFile]

    /// What a database says was applied to it.
    struct History: Equatable {
        struct Entry: Equatable {
            let version: Int32
            let name: String
            let checksum: String
        }
        var migrations: [Entry] = []
        /// Checksum of each file of functions.
        var functions: [String: String] = [:]
    }

    init(migrations: [SQLFile], functions: [SQLFile]) throws(MigrationError) {
        var numbered: [(version: Int32, file: SQLFile)] = []
        for file in migrations {
            guard let version = file.version, version > 0, file.hasPlainName,
                !numbered.contains(where: { $0.version == version })
            else { throw .unusableFile(file.name) }
            numbered.append((version, file))
        }
        for file in functions where !file.hasPlainPath { throw .unusableFile(file.name) }
        self.migrations = numbered.sorted { $0.version < $1.version }
        self.functions = functions.sorted { $0.name < $1.name }
    }

    /// The migrations still to be applied. - Throws: when database and binary do not belong together.
    func pendingMigrations(_ history: History) throws(MigrationError) -> [(version: Int32, file: SQLFile)] {
        for entry in history.migrations {
            guard let known = migrations.first(where: { $0.version == entry.version }) else {
                throw .databaseIsNewer(version: entry.version, name: entry.name)
            }
            guard known.file.isSame(asApplied: entry.checksum) else { throw .edited(known.file.name) }
        }
        let applied = Set(history.migrations.map(\.version))
        let pending = migrations.filter { !applied.contains($0.version) }
        if let last = applied.max(), let early = pending.first, early.version < last {
            throw .outOfOrder(early.file.name)
        }
        return pending
    }

    /// The files of functions whose text differs from what was applied.
    func pendingFunctions(_ history: History) -> [SQLFile] {
        functions.filter { history.functions[$0.name] != $0.checksum }
    }
}
