/// A statement the application sends, prepared on each connection at its first use there.
///
/// Make them `static let`: the name identifies the statement on a connection, and two statements must not share one.
public struct Statement: Sendable, Hashable {
    /// What may be assumed when the answer to a statement is lost.
    public enum Effect: Sendable {
        /// Changes nothing: run again once on another connection.
        case readOnly
        /// Running it twice is as good as once: run again once on another connection.
        case idempotent
        /// Must not be run again without looking: a lost answer is ``StoreError/inDoubt``.
        case once
    }

    /// Name on the server; `[a-z_]+` by convention.
    public let name: String
    /// The SQL with `$1`… as parameters.
    public let sql: String
    /// Whether it may be repeated.
    public let effect: Effect

    /// A statement.
    public init(name: String, sql: String, effect: Effect) {
        self.name = name
        self.sql = sql
        self.effect = effect
    }

    /// Same name and same text. Two texts under one name cost a preparation at every change, but are never confused.
    public static func == (left: Statement, right: Statement) -> Bool {
        left.name == right.name && left.sql == right.sql
    }

    /// The name is enough to tell statements apart.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
