/// The store of used proofs (RFC 9449 §11.1), which the statements that take proofs use by themselves.
public struct ProofStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// After ``StoreError/proofForgotten``: the store remembers from now on.
    /// - Parameter latest: the store takes no proof from before this time, also when the database's clock is behind it;
    ///   seconds since the epoch.
    /// - Returns: the time from which the store remembers, in seconds since the epoch.
    public func begin(for realm: UUIDValue, after latest: Double) async throws(StoreError) -> Double {
        try await database.one(Self.calls.begin, ["after": latest], of: realm)
    }

    struct Calls: Sendable {
        let begin = FunctionCall<Double>("begin_proof_store", ["after"], effect: .idempotent, payer: .server)
    }
    static let calls = Calls()
}
