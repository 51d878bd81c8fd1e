/// What a binary brings, checked for sense, and what is missing of it given what a database has.
struct MigrationPlan: Sendable {
    /// By number.
    let migrations: [(version: Int32, file: SQLFile)]
    /// By path: those of `0_base` first.
    let functions: [SQLFile]
    /// The numbers that order releases.
    let range: SchemaRange
    /// What the migrations do, by their names.
    let facts: [String: MigrationFacts]

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
        /// Whether the table for the two numbers below exists.
        var hasRange = false
        /// The set of functions in force; 0 when it has no number.
        var functionSet: Int32 = 0
        /// The oldest binary that works on the schema; `nil` when the database does not say.
        var oldestBinary: Int32?
    }

    init(
        migrations: [SQLFile], functions: [SQLFile], range: SchemaRange = .own,
        facts: [String: MigrationFacts] = MigrationFacts.embedded
    ) throws(MigrationError) {
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
        self.range = range
        self.facts = facts
    }

    /// What is missing, and whether servers work without it.
    /// - Throws: when database and binary do not belong together, or the database is too new for this binary.
    func standing(_ history: History) throws(MigrationError) -> SchemaStanding {
        try checkBeginning(of: history)
        let newer = newerPart(of: history)
        let isWithin =
            range.obstacle(functionSet: history.functionSet, oldestBinary: history.oldestBinary ?? .max) == nil
        if let newer, !isWithin { throw .databaseIsNewer(newer, isServed: false) }
        let pending = try pendingMigrations(history).map(\.file.name)
        // The files of a newer set differ as they should.
        let functions = history.functionSet > range.functionSet ? [] : pendingFunctions(history).map(\.name)
        if let newer {
            guard pending.isEmpty, functions.isEmpty else { throw .databaseIsNewer(newer, isServed: false) }
            return SchemaStanding(pending: [], isNewer: true, isServed: true)
        }
        let files = pending + functions
        // Files of the same set that differ are of a build in between, which nothing is known about.
        let isServed = files.isEmpty || (isWithin && history.functionSet < range.functionSet)
        return SchemaStanding(pending: files, isNewer: false, isServed: isServed)
    }

    /// Migration 1 is the schema of release 1.0.0 as a whole. A database that began with another file is older.
    private func checkBeginning(of history: History) throws(MigrationError) {
        guard let began = history.migrations.first(where: { $0.version == 1 }),
            let first = migrations.first(where: { $0.version == 1 })
        else { return }
        guard began.name == first.file.name else { throw .beforeFirstRelease }
    }

    /// What the database has that this binary does not know, in words.
    func newerPart(of history: History) -> String? {
        if let entry = history.migrations.first(where: { entry in
            !migrations.contains { $0.version == entry.version }
        }) {
            return "migration \(entry.version) (\(entry.name))"
        }
        guard history.functionSet > range.functionSet else { return nil }
        return "function set \(history.functionSet), this binary has \(range.functionSet)"
    }

    /// The migrations still to be applied. - Throws: when database and binary do not belong together.
    func pendingMigrations(_ history: History) throws(MigrationError) -> [(version: Int32, file: SQLFile)] {
        for entry in history.migrations {
            guard let known = migrations.first(where: { $0.version == entry.version }) else { continue }
            guard known.file.checksum == entry.checksum else { throw .edited(known.file.name) }
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
