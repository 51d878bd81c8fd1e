import Grants
import Persistence
import Texts
import TokenEndpoint

extension SignInStep {
    static let offerPasskey = SignInStep(OfferPasskeyStep())
}

/// The offer to make a passkey after a sign-in by another way.
struct OfferPasskeyStep: PageStep {
    let name = "offer-passkey"
    let number: UInt8 = 7
    let fields: Set<String> = ["attestation"]
    let namesAccount = true
    let canBeCancelled = false

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .skip: return .goOn
        case .create:
            guard let attestation = form["attestation"], !transaction.ceremony.isEmpty else {
                return transaction.faulted(.passkeyFailed)
            }
            return .own(
                StepAct("enrol-passkey") { flow, transaction, context in
                    try await Self.enrol(attestation, flow, transaction, context)
                })
        default: throw InvalidForm()
        }
    }

    private static func enrol(
        _ attestation: String, _ flow: SignInFlow, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        let parts = flow.parts
        guard let live = try await flow.signedIn(transaction, context) else {
            return .next(context.begun(from: transaction, at: parts.clock()), nil)
        }
        var transaction = transaction
        do {
            _ = try await parts.passkeys.enrol(
                PasskeyCeremony(encoded: transaction.ceremony), attestation: Array(attestation.utf8),
                realm: context.realm,
                owner: Passkeys.Owner(
                    client: try context.client, session: live.id, user: live.user, pageOrigin: context.origin),
                source: context.exchange.source
            ) { model in
                PasskeyName.text(
                    model: model, userAgent: context.exchange.userAgent, time: parts.clock(),
                    parts.catalogue.texts(in: context.language))
            }
        } catch is Passkeys.EnrolmentFailure {
            transaction.fault = .passkeyFailed
            return .next(transaction, nil)
        }
        return try await flow.confirm(transaction, context)
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "offer-title" }

    func wording(_ transaction: SignInTransaction, _ rules: SignInRules) -> String? {
        transaction.fault == .passkeyFailed ? "fault-passkey_not_made" : nil
    }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        var values: PageValues = ["script": .value(scene.assets.name(of: .passkey))]
        let context = scene.context
        if let live = scene.live, let rpID = scene.rules.rpID, let client = context.purpose.client,
            let begun = try await scene.parts.passkeys.enrolment(
                realm: context.realm, rpID: rpID,
                owner: Passkeys.Owner(
                    client: client, session: live.id, user: live.user, pageOrigin: context.origin))
        {
            transaction.ceremony = begun.ceremony.encoded
            values.set("options", .value(String(decoding: begun.options, as: UTF8.self)))
        }
        return values
    }
}
