/// Why the store did not do what it was asked, told apart by what is certain about the effect.
///
/// Judged by connection status, then SQLSTATE; never by message text, which may hold data. Safe to log.
public enum StoreError: Error, Equatable, Sendable {
    /// Not executed: there is no usable connection to a writable PostgreSQL right now. Trying later is right.
    case unavailable(Reason)
    /// The connection was lost after the statement or COMMIT was sent: it may have happened or not. Look it up.
    case inDoubt
    /// Not executed: statement timeout (57014), lock timeout (55P03), or no answer within the client's own deadline.
    case timedOut
    /// Not executed: the task that asked was cancelled.
    case cancelled
    /// Not executed: serialization failure or deadlock (40001, 40P01), still after three more tries.
    case conflict(sqlstate: String)
    /// Not executed: an integrity constraint refused it (class 23).
    case violation(sqlstate: String, constraint: String?)
    /// Not executed: PostgreSQL refused it for another reason; a defect of ours (42501, 22P02 and the like).
    case rejected(sqlstate: String)
    /// Not executed: the proof of possession of the request was used before (RFC 9449 §11.1).
    case proofUsed
    /// Not executed: the proof is from before the store of used proofs was emptied, by a crash of PostgreSQL or a
    /// failover. A proof with a new nonce is accepted, once ``ProofStore/begin()`` was called.
    case proofForgotten
    /// Not executed: the client may not use the grant, which the node's configuration did not show yet.
    case clientFault(ClientFault)
    /// The answer has another shape than the statement's decoder expects.
    case malformedResult

    /// Why a client may not use a grant, whatever it presents (`postern.client_fault`).
    public enum ClientFault: String, Sendable, CaseIterable {
        /// It is disabled or gone.
        case client
        /// It lacks the permission.
        case permission
        /// The realm has the grant switched off.
        case `switch`
        /// The realm is disabled.
        case realm
    }

    /// Why no connection was usable.
    public enum Reason: String, Sendable, CaseIterable {
        /// Connection refused, starting up, shutting down, too many clients, wrong password, no such host.
        case connectFailed
        /// The connection broke before the statement could have run.
        case connectionLost
        /// Every connection stayed busy for as long as a caller may wait.
        case poolExhausted
        /// As many callers wait as may.
        case tooManyWaiters
        /// The pool does not run yet, or no longer.
        case notRunning
        /// The server takes no writes: a standby, or `default_transaction_read_only` (25006).
        case readOnly
        /// The session does not have the settings that durability needs.
        case unsafeSettings
        /// The server is out of disk, memory or connections, or fails at input and output (classes 53, 58).
        case serverResources
        /// The realm is between two clusters.
        case realmMoves
    }

    /// The case alone, for traces.
    var kind: String {
        switch self {
        case .unavailable(let reason): reason.rawValue
        case .inDoubt: "inDoubt"
        case .timedOut: "timedOut"
        case .cancelled: "cancelled"
        case .conflict: "conflict"
        case .violation: "violation"
        case .rejected: "rejected"
        case .proofUsed: "proofUsed"
        case .proofForgotten: "proofForgotten"
        case .clientFault: "clientFault"
        case .malformedResult: "malformedResult"
        }
    }
}
