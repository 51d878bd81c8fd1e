import Grants
import Persistence
import TokenEndpoint

extension SignInStep {
    static let continueAs = SignInStep(ContinueAsStep())
}

/// The question whether to go on with the account that is signed in.
struct ContinueAsStep: PageStep {
    let name = "continue-as"
    let number: UInt8 = 9
    let namesAccount = true

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .continue: return .goOn
        case .otherAccount:
            if rules.provesAddressOnly { transaction.facts.insert(.wantsCode) }
            return transaction.shown(.address)
        default: throw InvalidForm()
        }
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "continue-title" }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        var values = PageValues()
        values.set(account: scene.rules.provesAddressOnly ? transaction.address : scene.live?.address ?? "")
        return values
    }
}
