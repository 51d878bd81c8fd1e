/// The store of used proofs (RFC 9449 §11.1), which the statements that take proofs use by themselves.
public struct ProofStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// After ``StoreError/proofForgotten``: the store remembers from now on.
    /// - Returns: since when it does, in seconds since the epoch.
    public func begin(for realm: UUIDValue) async throws(StoreError) -> Double {
        try await database.one(Self.calls.begin, [:], of: realm)
    }

    struct Calls: Sendable {
        let begin = FunctionCall<Double>("begin_proof_store", effect: .idempotent, payer: .server)
    }
    static let calls = Calls()
}
