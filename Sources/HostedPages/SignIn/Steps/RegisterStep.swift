import Grants
import TokenEndpoint

extension SignInStep {
    static let register = SignInStep(RegisterStep())
}

/// A registration of its own: an address, with names and terms.
struct RegisterStep: PageStep {
    let name = "register"
    let number: UInt8 = 2
    let fields: Set<String> = ["address", "first_name", "last_name", "terms"]
    let mainField: FormField? = .address
    let asksNames = true

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        guard rules.offersRegistration else { return try transaction.closed() }
        let typed = form["address"] ?? ""
        transaction.address = typed.beginning(bytes: 254)
        transaction.keepProfile(of: form)
        do throws(TypedAddresses.Fault) {
            _ = try rules.registeredAddresses.read(typed)
        } catch {
            return transaction.faulted(InputFault(error))
        }
        guard let names = transaction.names(form, rules) else { return .show }
        guard !rules.hasTerms || form["terms"] != nil else { return transaction.faulted(.fieldMissing, at: .terms) }
        transaction.facts.insert(.registers)
        if rules.hasTerms { transaction.facts.insert(.acceptsTerms) }
        return transaction.take(address: typed, rules, names)
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "register-title" }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        var values: PageValues = ["address": .value(transaction.address)]
        values.add(kindOf: scene.rules.registeredAddresses)
        values.add(namesOf: transaction, scene.context, asksTerms: true)
        return values
    }
}
