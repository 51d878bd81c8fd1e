/// Proofs of phone numbers, from a backend's start to the sign-in.
public struct PossessionStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What a backend starts.
    public struct Start: Sendable {
        let arguments: Arguments

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - proveID: names the number where `phone` does not.
        ///   - lifetime: in seconds.
        public init(
            realm: UUIDValue, client: UUIDValue, id: UUIDValue, authID: UUIDValue, kind: PossessionKind,
            phone: String?, proveID: UUIDValue?, detail: PossessionDetail, lifetime: Int
        ) {
            let start: Arguments = [
                "realm": realm, "client": client, "id": id, "auth_id": authID, "kind": kind, "phone": phone,
                "prove_id": proveID,
            ]
            arguments = start + detail.arguments + ["lifetime": Int32(clamping: lifetime)]
        }
    }

    /// A message to the number that is to be proven.
    public struct Message: Sendable {
        let arguments: Arguments

        /// - Parameters:
        ///   - key: thumbprint of the app's key.
        ///   - keyed: HMAC of the code, under the line `codeKey` of the key file.
        ///   - risk, swapped: what providers said; `nil`: no provider was asked.
        ///   - template: of the message.
        public init(
            realm: UUIDValue, id: UUIDValue, key: [UInt8], channel: PossessionChannel, phone: String,
            region: String, salt: [UInt8], keyed: [UInt8]?, codeKey: [UInt8]?, linkHash: [UInt8]?, match: String?,
            risk: PossessionRisk?, swapped: PossessionSIM?, mail: SealedMessage, template: String, app: String?,
            locale: String?
        ) {
            let what: Arguments = [
                "realm": realm, "id": id, "key": key, "channel": channel, "phone": phone, "region": region,
                "salt": salt, "keyed": keyed, "code_key": codeKey, "link_hash": linkHash,
            ]
            let how: Arguments = [
                "match": match, "risk": risk, "swapped": swapped, "template": template, "app": app, "locale": locale,
            ]
            arguments = what + how + mail.arguments
        }
    }

    /// Starts a transaction. - Returns: no result when a limit refused it.
    public func start(_ start: Start, permits: PermitRequest) async throws(StoreError) -> (Bool?, PermitVerdict) {
        try await database.one(Self.calls.start, start.arguments + permits.arguments)
    }

    /// How a transaction stands, for the client that started it; `nil`: it has no such transaction.
    public func status(realm: UUIDValue, client: UUIDValue, id: UUIDValue) async throws(StoreError) -> PossessionFacts?
    {
        try await database.one(Self.calls.status, ["realm": realm, "client": client, "id": id])
    }

    /// Admits an app by the proof of its key, which is used up. - Parameter phone: a number that the app names.
    public func enter(
        realm: UUIDValue, authID: UUIDValue, phone: String?, proof: ProofUse
    ) async throws(StoreError) -> Reply<Entered> {
        try await database.one(
            Self.calls.enter,
            ["realm": realm] + proof.arguments(in: realm) + ["auth_id": authID, "phone": phone])
    }

    /// The state after a wait; `nil`: it was swept.
    public func state(realm: UUIDValue, id: UUIDValue) async throws(StoreError) -> PossessionState? {
        try await database.one(Self.calls.state, ["realm": realm, "id": id])
    }

    /// Pins the key of the app, and decides what that key proves by itself.
    /// - Parameters:
    ///   - publicKey: x and y, 32 bytes each.
    ///   - risk: as for ``Message``.
    ///   - isVerified: whether the operator knows the number to be this phone's.
    public func open(
        realm: UUIDValue, id: UUIDValue, key: [UInt8], publicKey: [UInt8], deviceID: UUIDValue?, source: String,
        risk: PossessionRisk?, isVerified: Bool
    ) async throws(StoreError) -> Reply<Opened> {
        try await database.one(
            Self.calls.open,
            [
                "realm": realm, "id": id, "key": key, "public_key": publicKey, "device_id": deviceID,
                "source": source, "risk": risk, "verified": isVerified,
            ])
    }

    /// Counts and queues a message. - Returns: no result when a limit refused it.
    public func send(
        _ message: Message, permits: PermitRequest
    ) async throws(StoreError) -> (Reply<Sent>?, PermitVerdict) {
        try await database.one(Self.calls.send, message.arguments + permits.arguments)
    }

    /// Counts a try and compares.
    /// - Parameters:
    ///   - keyed: HMAC of the code under each line of the key file.
    ///   - testKeyed: HMAC of the code under the keys of the test number, if it is one.
    public func check(
        realm: UUIDValue, id: UUIDValue, key: [UInt8], keyed: [[UInt8]], testKeyed: [[UInt8]]
    ) async throws(StoreError) -> Reply<Checked> {
        try await database.one(
            Self.calls.check, ["realm": realm, "id": id, "key": key, "keyed": keyed, "test_keyed": testKeyed])
    }

    /// Admits an app as ``enter(realm:authID:phone:proof:)`` does, and passes by what the link gave to it.
    public func finish(
        realm: UUIDValue, authID: UUIDValue, returnHash: [UInt8], proof: ProofUse
    ) async throws(StoreError) -> Reply<Finished> {
        try await database.one(
            Self.calls.finish,
            ["realm": realm] + proof.arguments(in: realm) + ["auth_id": authID, "return_hash": returnHash])
    }

    /// Admits an app in the same way; the person gives up.
    public func cancel(
        realm: UUIDValue, authID: UUIDValue, proof: ProofUse
    ) async throws(StoreError) -> Reply<Cancelled> {
        try await database.one(
            Self.calls.cancel, ["realm": realm] + proof.arguments(in: realm) + ["auth_id": authID])
    }

    /// What the person on the phone says. - Parameter number: two digits, as typed.
    public func answerLink(
        realm: UUIDValue, linkHash: [UInt8], denies: Bool, number: String?, returnHash: [UInt8]
    ) async throws(StoreError) -> LinkAnswer {
        try await database.one(
            Self.calls.answer,
            [
                "realm": realm, "link_hash": linkHash, "denies": denies, "number": number, "return_hash": returnHash,
            ])
    }

    /// A backend says which number the key belongs to.
    public func bind(
        realm: UUIDValue, client: UUIDValue, id: UUIDValue, phone: String
    ) async throws(StoreError) -> Reply<Bound> {
        try await database.one(Self.calls.bind, ["realm": realm, "client": client, "id": id, "phone": phone])
    }

    /// Takes the number from a key. - Returns: `false` for a key that is not this client's.
    public func revoke(realm: UUIDValue, client: UUIDValue, device: UUIDValue) async throws(StoreError) -> Bool {
        try await database.one(Self.calls.revoke, ["realm": realm, "client": client, "device": device])
    }

    /// How a transaction was passed; `nil`: it is not.
    public func passedBy(realm: UUIDValue, authID: UUIDValue) async throws(StoreError) -> String? {
        try await database.one(Self.calls.passedBy, ["realm": realm, "auth_id": authID])
    }

    /// Signs in the user whose number was proven, with the proof that the session brings.
    /// - Parameters:
    ///   - passedBy: as ``passedBy(realm:authID:)`` said it.
    ///   - secondFactor: what is presented beside; `nil` in the first call.
    /// - Returns: no outcome when a limit refused it; `nil` inside while another statement holds the account.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, authID: UUIDValue, passedBy: String,
        session: NewSession, permits: PermitRequest, secondFactor: SecondFactorProof?
    ) async throws(StoreError) -> (SignInOutcome??, PermitVerdict) {
        try await database.one(
            Self.calls.redeem,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits)
                + ["auth_id": authID, "by": passedBy] + secondFactor.arguments)
    }
}
