import Grants
import HTTPTypes

/// A part of the product that a realm may have switched off. Its endpoints then do not exist there for any caller.
enum Requirement: Sendable {
    /// Native grants.
    case nativeGrants
    /// Approvals and trusted devices.
    case approvals
    /// Trusted devices, or keys of phone numbers, which their owner sees and removes without approvals, too.
    case deviceKeys
    /// Proofs of phone numbers, as apps use them.
    case possession
    /// The same, as Prove's wire for backends.
    case proveWire
    /// Cotter's web wire.
    case cotter
    /// Cotter's events.
    case cotterEvents

    /// - Throws: the answer to give while it is off.
    func require(in realm: Realm) throws(Refusal) {
        switch self {
        case .nativeGrants:
            guard realm.nativeGrantsEnabled else { throw Refusal(.nativeGrantsDisabled) }
        case .approvals:
            guard realm.approvals.isEnabled else { throw Refusal(.approvalsDisabled) }
        case .deviceKeys:
            guard realm.approvals.isEnabled || realm.possession.isEnabled else { throw Refusal(.approvalsDisabled) }
        case .possession:
            guard realm.possession.isEnabled else { throw Refusal(.possessionDisabled) }
        case .proveWire:
            guard realm.possession.isEnabled else { throw Refusal(Answer(.notFound)) }
        case .cotter:
            guard realm.offersCotter else { throw Refusal(Answer(.notFound)) }
        case .cotterEvents:
            guard realm.approvals.isEnabled else { throw Refusal(Answer(.notFound)) }
        }
    }
}
