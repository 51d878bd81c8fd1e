import Encoding
public import Persistence

/// `/connect/approvals`: what trusted devices are shown, and their answers.
public struct Approvals: Sendable {
    private let store: ApprovalStore
    private let limiter: RateLimiter

    public init(store: ApprovalStore, limiter: RateLimiter) {
        self.store = store
        self.limiter = limiter
    }

    /// One request for an inbox, however often it asks the database.
    public actor InboxPoll {
        private let store: ApprovalStore
        private let realm: Realm
        private let proof: ProofUse
        private var admission: Admission

        init(_ store: ApprovalStore, _ limiter: RateLimiter, realm: Realm, proof: ProofUse) {
            self.store = store
            self.realm = realm
            self.proof = proof
            admission = Admission(
                limiter, .trustedDevice, [.init(.target, Hex.encode(proof.thumbprint))], realm: realm)
        }

        /// What the device is shown now; `nil` for a key that is no trusted device.
        /// - Throws: `rate_limited` (policy `trusted-device`), or what the database threw.
        public func inbox() async throws -> ApprovalStore.Inbox? {
            let (store, realm, proof) = (self.store, self.realm, self.proof)
            var admission = self.admission
            defer { self.admission = admission }
            let looked = try await admission.admitting { permits in
                try await store.inbox(realm: realm.id, proof: proof, permits: permits)
            }
            switch looked {
            case .device(let inbox): return inbox
            case .unknown: return nil
            }
        }
    }

    /// A poll by the key of a proof.
    public func poll(by proof: ProofUse, realm: Realm) -> InboxPoll {
        InboxPoll(store, limiter, realm: realm, proof: proof)
    }

    /// Decides a request, if the answer is signed by a device of its user over what that device was shown.
    /// - Throws: `rate_limited` (policy `trusted-device`), or what the database threw.
    public func answer(
        _ text: String, to approval: UUIDValue, realm: Realm, source: String
    ) async throws -> ApprovalStore.Answered {
        guard let answer = ApprovalAnswer(text, to: approval, realm: realm)?.signed else { return .invalid }
        return try await limiter.admitting(
            .trustedDevice, [.init(.target, Hex.encode(answer.thumbprint))], realm: realm
        ) { permits in
            try await store.answer(answer, realm: realm.id, source: source, permits: permits)
        }
    }
}
