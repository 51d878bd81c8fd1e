/// What a presented second factor must be compared with.
public struct SecondFactorPrompt: Sendable {
    /// The row the seed is sealed for.
    public let factor: UUIDValue
    /// The TOTP seed, sealed, with the data keys it needs (`postern.second_factor_material`).
    public let sealedSeed: [UInt8]
    /// Start of the newest time step that was accepted, seconds since the epoch.
    public let lastStepAt: Double
    /// The database clock, seconds since the epoch.
    public let now: Double
}

/// The result of comparing the presented second factor. Sent together with the first factor; then spent with it, or
/// counted as wrong.
public struct SecondFactorProof: Sendable {
    /// What was presented.
    public enum Kind: Sendable {
        /// The number of the time step whose code it is; `nil` for none.
        case totp(step: Int64?)
        /// The code's HMAC under each key it may have been stored under.
        case recoveryCode([[UInt8]])
    }

    /// The row whose seed was compared with.
    public let factor: UUIDValue
    /// What was presented.
    public let kind: Kind

    public init(factor: UUIDValue, kind: Kind) {
        self.factor = factor
        self.kind = kind
    }

    /// What every function takes that redeems a first factor.
    static let argument = Argument.row("second", as: "second_factor_proof", ["factor", "totp_step", "recovery"])
}

extension SecondFactorProof? {
    var arguments: Arguments {
        switch self?.kind {
        case .totp(let step): ["factor": self?.factor, "totp_step": step, "recovery": Parameter.null]
        case .recoveryCode(let keyed): ["factor": self?.factor, "totp_step": Parameter.null, "recovery": keyed]
        case nil: ["factor": Parameter.null, "totp_step": Parameter.null, "recovery": Parameter.null]
        }
    }
}

/// Second factors: enrolment and removal. They are used in the statements that redeem a first factor.
public struct SecondFactorStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// The data keys of seeds and recovery codes.
    public var dataKeys: DataKeyStore { DataKeyStore(database) }

    /// The outcome of an enrolment.
    public enum Enrolment: String, Sendable, CaseIterable {
        case enrolled
        /// The ceremony was spent before, or is expired.
        case ceremony
        /// The account has a second factor that this session neither proved nor enrolled.
        case stepUp = "step_up"
        /// The session ended meanwhile.
        case signedOut = "signed_out"
    }

    /// Stores a proven TOTP seed in place of an earlier one, and spends the ceremony.
    /// - Parameters:
    ///   - expiresAt: the ceremony's end, seconds since the epoch, judged by the database clock.
    ///   - factor: the row's id, which the seed is sealed for.
    ///   - step: the number of the time step whose code proved the seed: spent.
    ///   - recoveryCodes: of each the id of the data key (16 bytes) and the HMAC under it (32 bytes).
    public func enrol(
        realm: UUIDValue, session: UUIDValue, ceremony: [UInt8], expiresAt: Double, factor: UUIDValue,
        sealedSeed: [UInt8], step: Int64, recoveryCodes: [[UInt8]], source: String
    ) async throws(StoreError) -> Enrolment {
        try await database.one(
            Self.calls.enrol,
            [
                "realm": realm, "session": session, "ceremony": ceremony, "expires": expiresAt, "factor": factor,
                "sealed_seed": sealedSeed, "step": step, "recovery": recoveryCodes, "source": source,
            ])
    }

    /// The outcome of a removal.
    public enum Removal: String, Sendable, CaseIterable {
        case removed
        /// There was none.
        case none
        /// This session neither proved nor enrolled it.
        case stepUp = "step_up"
        /// The session ended meanwhile.
        case signedOut = "signed_out"
    }

    /// Removes the second factor of the session's user.
    public func remove(realm: UUIDValue, session: UUIDValue, source: String) async throws(StoreError) -> Removal {
        try await database.one(Self.calls.remove, ["realm": realm, "session": session, "source": source])
    }
}

extension SecondFactorStore.Enrolment: ColumnValue {}
extension SecondFactorStore.Removal: ColumnValue {}

extension SecondFactorStore {
    struct Calls: Sendable {
        let enrol = FunctionCall<Enrolment>(
            "enrol_totp",
            ["realm", "session", "ceremony", "expires", "factor", "sealed_seed", "step", "recovery", "source"],
            effect: .once)
        let remove = FunctionCall<Removal>("remove_totp", ["realm", "session", "source"], effect: .once)
    }
    static let calls = Calls()
}
