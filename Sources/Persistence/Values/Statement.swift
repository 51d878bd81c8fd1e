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

    /// The share of the pool that a statement's connection counts against.
    public enum Payer: Sendable {
        /// The realm that is the first parameter; the server itself when that is not a UUID.
        case realm
        /// The server itself, though the statement may name a realm: configuration, mail, sweeping.
        case server
    }

    /// Name on the server; `[a-z_]+` by convention.
    public let name: String
    /// The SQL with `$1`… as parameters.
    public let sql: String
    /// Whether it may be repeated.
    public let effect: Effect
    /// The share of the pool its connection counts against.
    public let payer: Payer

    /// A statement. By convention the first parameter of a statement about a realm is the realm's id.
    public init(name: String, sql: String, effect: Effect, payer: Payer = .realm) {
        self.name = name
        self.sql = sql
        self.effect = effect
        self.payer = payer
    }

    /// Same name and same text. Two texts under one name cost a preparation at every change, but are never confused.
    public static func == (left: Statement, right: Statement) -> Bool {
        left.name == right.name && left.sql == right.sql
    }

    /// The name is enough to tell statements apart.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
