/// What trusted devices see of requests for approval, and how they answer.
extension ApprovalStore {
    /// What a device is shown. Times are seconds since the epoch.
    public struct Inbox: Sendable {
        /// Whose device it is.
        public let user: UUIDValue
        /// The end of its probation, in which it is shown nothing.
        public let probationUntil: Double?
        /// Until when none is shown.
        public let quietUntil: Double?
        /// The oldest first.
        public let approvals: [Item]

        /// A request that the device may answer.
        public struct Item: Sendable, Decodable {
            /// The row's id.
            public let id: String
            /// What it is about.
            public let event: String
            /// Who asks.
            public let client_id: String
            /// Who asks, as people know it.
            public let client_name: String
            /// What is shown beside.
            public let binding_message: String?
            /// The asker's own address.
            public let source: String?
            /// Seconds since the epoch.
            public let created_at: Double
            /// Seconds since the epoch.
            public let expires_at: Double
            /// Whether a number must be typed to approve.
            public let match_required: Bool
            /// 64 hexadecimal digits.
            public let challenge: String
        }
    }

    /// Who looks into an inbox.
    public enum Looked: Sendable {
        case device(Inbox)
        /// The key is no trusted device.
        case unknown
    }

    /// What the device whose key was proven is shown.
    public func inbox(
        realm: UUIDValue, proof: ProofUse, permits: PermitRequest
    ) async throws(StoreError) -> (Looked?, PermitVerdict) {
        try await database.one(
            Self.calls.inbox, ["realm": realm] + proof.arguments(in: realm) + permits.arguments)
    }

    /// What a device signed.
    public struct Answer: Sendable {
        /// Which request.
        let approval: UUIDValue
        /// The device.
        public let thumbprint: [UInt8]
        /// `approve`, `deny` or `report`.
        let decision: String
        /// As it was shown.
        let clientID: String
        /// As it was shown.
        let event: String
        /// As it was shown.
        let bindingMessage: String?
        /// As it was given.
        let challenge: [UInt8]
        /// As it was typed.
        let matchNumber: String?

        public init(
            approval: UUIDValue, thumbprint: [UInt8], decision: String, clientID: String, event: String,
            bindingMessage: String?, challenge: [UInt8], matchNumber: String?
        ) {
            self.approval = approval
            self.thumbprint = thumbprint
            self.decision = decision
            self.clientID = clientID
            self.event = event
            self.bindingMessage = bindingMessage
            self.challenge = challenge
            self.matchNumber = matchNumber
        }
    }

    /// The outcome of an answer.
    public enum Answered: Sendable {
        /// As the device said, now or before; seconds since the epoch.
        case decided(String, at: Double)
        /// The number was wrong: the request is over.
        case numberMismatch
        /// Otherwise, or by another device.
        case alreadyDecided(String)
        /// The device did not sign what it was shown.
        case invalid
        /// The key is no device that may answer.
        case notTrusted
        /// There is no such request for the device's user.
        case notFound
    }

    /// Decides a request, once.
    public func answer(
        _ answer: Answer, realm: UUIDValue, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Answered?, PermitVerdict) {
        let signed: Arguments = [
            "realm": realm, "approval": answer.approval, "thumbprint": answer.thumbprint, "decision": answer.decision,
            "client_id": answer.clientID, "event": answer.event, "binding_message": answer.bindingMessage,
            "challenge": answer.challenge, "match_number": answer.matchNumber, "source": source,
        ]
        return try await database.one(Self.calls.answer, signed + permits.arguments)
    }
}
