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

    /// Takes the parts as they are.
    public init(factor: UUIDValue, kind: Kind) {
        self.factor = factor
        self.kind = kind
    }

    /// In the order in which every function that redeems a first factor takes them.
    static func parameters(_ proof: SecondFactorProof?) -> [Parameter] {
        guard let proof else { return [.null, .null, .null] }
        switch proof.kind {
        case .totp(let step): return [.uuid(proof.factor), step.map { .bigint($0) } ?? .null, .null]
        case .recoveryCode(let keyed): return [.uuid(proof.factor), .null, .byteArrays(keyed)]
        }
    }
}

extension Row {
    /// The refusal of a statement that redeems a first factor, or what `postern.check_second_factor` asks for.
    /// - Parameter factor: the first of three columns: the row, the sealed seed, the last step.
    borrowing func refusal(
        _ outcome: String, reason: Int, now: Int, factor: Int
    ) throws(StoreError) -> SignInOutcome {
        switch outcome {
        case "second_factor":
            .secondFactor(
                SecondFactorPrompt(
                    factor: try uuid(factor), sealedSeed: try bytes(factor + 1), lastStepAt: try double(factor + 2),
                    now: try double(now)))
        case "second_factor_wrong": .secondFactorWrong
        case "second_factor_gone": .secondFactorGone
        default: .refused(try textOrNil(reason) ?? "refused")
        }
    }
}

/// Second factors: enrolment and removal. They are used in the statements that redeem a first factor.
public struct SecondFactorStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The data keys of seeds and recovery codes.
    public var dataKeys: DataKeyStore { DataKeyStore(database) }

    /// A proven TOTP seed to store.
    public struct NewFactor: Sendable {
        /// The row's id, which the seed is sealed for.
        public let id: UUIDValue
        /// Sealed.
        public let sealedSeed: [UInt8]
        /// The number of the time step whose code proved it: spent.
        public let step: Int64
        /// Of each recovery code the id of the data key (16 bytes) and the HMAC under it (32 bytes).
        public let recoveryCodes: [[UInt8]]

        /// Takes the parts as they are.
        public init(id: UUIDValue, sealedSeed: [UInt8], step: Int64, recoveryCodes: [[UInt8]]) {
            self.id = id
            self.sealedSeed = sealedSeed
            self.step = step
            self.recoveryCodes = recoveryCodes
        }
    }

    /// The outcome of an enrolment.
    public enum Enrolment: String, Sendable {
        case enrolled
        /// The ceremony was spent before, or is expired.
        case ceremony
        /// The account has a second factor that this session neither proved nor enrolled.
        case stepUp = "step_up"
        /// The session ended meanwhile.
        case signedOut = "signed_out"
    }

    /// Stores a proven seed in place of an earlier one, and spends the ceremony.
    /// - Parameter expiresAt: the ceremony's end, seconds since the epoch, judged by the database clock.
    public func enrol(
        realm: UUIDValue, session: UUIDValue, ceremony: [UInt8], expiresAt: Double, _ factor: NewFactor, source: String
    ) async throws(StoreError) -> Enrolment {
        let parameters: [Parameter] = [
            .uuid(realm), .uuid(session), .bytes(ceremony), .double(expiresAt), .uuid(factor.id),
            .bytes(factor.sealedSeed), .bigint(factor.step), .byteArrays(factor.recoveryCodes), .text(source),
        ]
        let rows = try await database.query(Self.enrolTOTP, parameters) { (row) throws(StoreError) in
            Enrolment(rawValue: try row.text(0))
        }
        guard let enrolment = rows.first ?? nil else { throw .malformedResult }
        return enrolment
    }

    /// The outcome of a removal.
    public enum Removal: String, Sendable {
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
        let rows = try await database.query(Self.removeTOTP, [.uuid(realm), .uuid(session), .text(source)]) {
            (row) throws(StoreError) in Removal(rawValue: try row.text(0))
        }
        guard let removal = rows.first ?? nil else { throw .malformedResult }
        return removal
    }

    private static let enrolTOTP = Statement(
        name: "enrol_totp", sql: "SELECT postern.enrol_totp($1, $2, $3, $4, $5, $6, $7, $8, $9)", effect: .once)
    private static let removeTOTP = Statement(
        name: "remove_totp", sql: "SELECT postern.remove_totp($1, $2, $3)", effect: .once)
}
