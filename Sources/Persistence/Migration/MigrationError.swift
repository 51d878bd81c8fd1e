/// Why the schema cannot be brought, or found, up to date. For operators.
public enum MigrationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No connection; the message says why.
    case cannotConnect(String)
    /// The connection was lost or overdue. Run it again: what was committed is remembered.
    case interrupted
    /// The list of files is unusable: a name without a number, a number twice, an odd character.
    case unusableFile(String)
    /// A migration was changed after it had been applied.
    case edited(String)
    /// The database was made by a binary of before the first release.
    case beforeFirstRelease
    /// A migration was added before others that are applied already.
    case outOfOrder(String)
    /// A newer binary has migrated the database, which has what the text says. `isServed`: this binary's servers work
    /// on it.
    case databaseIsNewer(String, isServed: Bool)
    /// A lock was not free in all the time; the text says which transactions are open.
    case locked(file: String, holders: String)
    /// A file was refused; everything it did is undone.
    case refused(file: String, line: Int?, sqlstate: String, message: String)

    /// What happened and what to do.
    public var description: String {
        switch self {
        case .cannotConnect(let message): "cannot connect to the database: \(message)"
        case .interrupted: "the connection to the database was lost; run it again, what was committed is remembered"
        case .unusableFile(let name): "\(name): the name of a migration is NNNN_what.sql, each number once"
        case .edited(let name): "\(name) was edited after it had been applied; add a new migration instead"
        case .beforeFirstRelease:
            "the database is of before release 1.0.0: nothing of it is kept, make a new, empty one"
        case .outOfOrder(let name):
            "\(name) comes before migrations that are applied already; give it the next free number"
        case .databaseIsNewer(let what, isServed: false):
            "the database is newer than this binary: it has \(what); use a newer binary"
        case .databaseIsNewer(let what, isServed: true):
            "the database is newer than this binary: it has \(what); this binary's servers work on it, but its migrate "
                + "would put older functions in the place of newer ones: only a newer binary may migrate"
        case .locked(let file, let holders):
            "\(file): a lock was not free; \(holders); nothing of it was kept: run it again when they have ended"
        case .refused(let file, let line, let sqlstate, let message):
            "\(file)\(line.map { ":\($0)" } ?? ""): \(message) (SQLSTATE \(sqlstate)); nothing of it was kept"
        }
    }
}
