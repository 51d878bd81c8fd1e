/// Which binaries and which schemas go together. Releases are ordered by the number of their set of functions.
public struct SchemaRange: Sendable, Equatable {
    /// The number of the binary's set of functions. Each release has a greater one than the release before.
    public var functionSet: Int32
    /// The oldest set in a database on which the binary's servers work.
    public var oldestFunctionSet: Int32
    /// The oldest binary, by its set, whose servers work on the schema that the binary's `migrate` leaves.
    public var oldestBinary: Int32

    /// - Parameters: see the members.
    public init(functionSet: Int32, oldestFunctionSet: Int32, oldestBinary: Int32) {
        self.functionSet = functionSet
        self.oldestFunctionSet = oldestFunctionSet
        self.oldestBinary = oldestBinary
    }

    /// Of this binary. `CHANGELOG.md` has the number of each release's set; release 1.0.0 has the first.
    public static let own = SchemaRange(functionSet: 1, oldestFunctionSet: 1, oldestBinary: 1)

    /// Why servers of this binary do not work on a schema with these numbers; `nil` when they do. For operators.
    public func obstacle(functionSet found: Int32, oldestBinary oldest: Int32) -> String? {
        if found < oldestFunctionSet {
            return "the database has function set \(found), this binary needs \(oldestFunctionSet) or a later one: "
                + "run postern migrate"
        }
        if oldest > functionSet {
            return "the database works with binaries of function set \(oldest) or later, this one has "
                + "\(functionSet): use a newer binary"
        }
        return nil
    }
}

/// What a database lacks of what a binary brings, and whether the binary's servers work on it as it is.
public struct SchemaStanding: Sendable, Equatable {
    /// The files that `migrate` would apply, in order; none when a newer binary has migrated the database.
    public let pending: [String]
    /// Whether a newer binary has migrated the database.
    public let isNewer: Bool
    /// Whether this binary's servers work on the database as it is.
    public let isServed: Bool
}
