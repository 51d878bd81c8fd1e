/// Trusted devices: keys of devices that have a user.
public struct DeviceKeyStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A device as its owner sees it.
    public struct Listed: Sendable {
        /// Names it in calls.
        public let id: UUIDValue
        /// The name people read.
        public let displayName: String?
        /// Through which client it was added; empty when that is gone.
        public let clientID: String
        /// Seconds since the epoch.
        public let createdAt: Double
        /// Seconds since the epoch; `nil` while unused.
        public let lastUsedAt: Double?
        /// Until when it may not approve, adopt or sign in; `nil`: it may.
        public let probationUntil: Double?
        /// Whether another device added it.
        public let isAdopted: Bool
        /// Whether it is a trusted device; else its key only proves a number.
        public let isTrusted: Bool
        /// The number of the user that its key proves, E.164.
        public let phone: String?

        static func columns(_ row: inout RecordReader) throws(StoreError) -> Listed {
            Listed(
                id: try row("id"), displayName: try row("display_name"), clientID: try row("client_id"),
                createdAt: try row("created_at"), lastUsedAt: try row("last_used_at"),
                probationUntil: try row("probation_until"), isAdopted: try row("is_adopted"),
                isTrusted: try row("is_trusted"), phone: try row("phone"))
        }
    }

    /// What came of a key that was to become a device.
    public enum Added: Sendable {
        /// It is one now, or was one of the same user before.
        case added(UUIDValue, probationUntil: Double?)
        /// Another user's.
        case keyInUse
        /// The user has ten.
        case tooMany
        /// The session has ended.
        case signedOut
    }

    /// Makes the key of the proof a device of the session's user, and tells the user.
    /// - Parameters:
    ///   - publicKey: coordinates, 32 bytes each.
    ///   - pushHandle: sealed.
    public func add(
        realm: UUIDValue, proof: ProofUse, session: UUIDValue, publicKey: [UInt8], displayName: String?,
        pushHandle: [UInt8]?, source: String
    ) async throws(StoreError) -> Added {
        let device: Arguments = [
            "session": session, "public_key": publicKey, "display_name": displayName, "push_handle": pushHandle,
            "source": source,
        ]
        return try await database.one(Self.calls.add, ["realm": realm] + proof.arguments(in: realm) + device)
    }

    /// The user's devices, newest first.
    public func list(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> [Listed] {
        try await database.all(Self.calls.list, ["realm": realm, "user": user, "id": Parameter.null])
    }

    /// - Parameter pushHandle: sealed.
    /// - Returns: the device as it is then; `nil` if the session's user has no such device.
    public func change(
        _ id: UUIDValue, realm: UUIDValue, session: UUIDValue, displayName: String?, pushHandle: [UInt8]?,
        clearsPushHandle: Bool
    ) async throws(StoreError) -> Listed? {
        try await database.first(
            Self.calls.change,
            [
                "realm": realm, "session": session, "id": id, "display_name": displayName, "push_handle": pushHandle,
                "clear_push": clearsPushHandle,
            ])
    }

    /// - Returns: `true` exactly once for a device of the session's user.
    public func remove(
        _ id: UUIDValue, realm: UUIDValue, session: UUIDValue, source: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.remove, ["realm": realm, "session": session, "id": id, "source": source])
    }

    /// What came of a device's call about itself.
    public enum OwnCall: Sendable {
        /// The device as it is then; `nil` when it removed itself.
        case done(Listed?)
        /// The key is no device, or its user is disabled.
        case unknown
        /// The call named another device.
        case foreign
    }

    /// A device reads, changes or removes itself. - Parameter pushHandle: sealed.
    public func call(
        realm: UUIDValue, proof: ProofUse, id: UUIDValue?, displayName: String?, pushHandle: [UInt8]?,
        clearsPushHandle: Bool, removes: Bool, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (OwnCall?, PermitVerdict) {
        let call: Arguments = [
            "id": id, "display_name": displayName, "push_handle": pushHandle, "clear_push": clearsPushHandle,
            "remove": removes, "source": source,
        ]
        return try await database.one(
            Self.calls.call, ["realm": realm] + proof.arguments(in: realm) + permits.arguments + call)
    }

    /// What came of an adoption.
    public enum Adopted: Sendable {
        /// The new device.
        case adopted(Listed)
        /// The approving key is no device of this user that may adopt.
        case notTrusted
        /// Offer or approval are not as they should be, or spent.
        case invalid
        /// Another user's.
        case keyInUse
        /// The user has ten.
        case tooMany
        /// The session has ended.
        case signedOut
    }

    /// Makes the key of an offer a device of the session's user, by the approval of another one, and spends the offer.
    /// - Parameters:
    ///   - approver: thumbprint of the key that signed the approval.
    ///   - isValid: whether offer and approval are as they should be, but for the digits.
    ///   - offer: its id.
    ///   - expiresAt: its end, seconds since the epoch, judged by the database clock.
    ///   - isRight: whether the digits are.
    ///   - client: the client's row key.
    public func adopt(
        realm: UUIDValue, session: UUIDValue, approver: [UInt8], isValid: Bool, offer: [UInt8], expiresAt: Double,
        isRight: Bool, client: UUIDValue, thumbprint: [UInt8], publicKey: [UInt8], displayName: String?, source: String
    ) async throws(StoreError) -> Adopted {
        try await database.one(
            Self.calls.adopt,
            [
                "realm": realm, "session": session, "approver": approver, "is_valid": isValid, "offer": offer,
                "expires": expiresAt, "is_right": isRight, "client": client, "thumbprint": thumbprint,
                "public_key": publicKey, "display_name": displayName, "source": source,
            ])
    }

    /// A device signs in the user whose it is, by the proof that goes with `session`.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again: `gt:urn:postern:device`.
    ///   - nonce: used up with it.
    /// - Returns: `nil` inside where another transaction has the user.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, nonce: ProofUse, session: NewSession,
        permits: PermitRequest, secondFactor: SecondFactorProof? = nil
    ) async throws(StoreError) -> (SignInOutcome??, PermitVerdict) {
        try await database.one(
            Self.calls.redeem,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits)
                + ["nonce": nonce.packed] + secondFactor.arguments)
    }
}
