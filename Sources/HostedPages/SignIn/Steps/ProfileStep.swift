import Grants
import TokenEndpoint

extension SignInStep {
    static let profile = SignInStep(ProfileStep())
}

/// The names and terms of a new user whose address is proven.
struct ProfileStep: PageStep {
    let name = "profile"
    let number: UInt8 = 6
    let fields: Set<String> = ["first_name", "last_name", "terms"]
    let asksNames = true
    let holdsProof = true

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        transaction.keepProfile(of: form)
        let accepts = form["terms"] != nil || transaction.facts.contains(.acceptsTerms)
        guard let names = transaction.names(form, rules) else { return .show }
        guard !rules.hasTerms || accepts else { return transaction.faulted(.fieldMissing, at: .terms) }
        if rules.hasTerms { transaction.facts.insert(.acceptsTerms) }
        return .register(first: names.first, last: names.last)
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "profile-title" }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        var values = PageValues()
        values.add(namesOf: transaction, scene.context, asksTerms: !transaction.facts.contains(.acceptsTerms))
        return values
    }
}
