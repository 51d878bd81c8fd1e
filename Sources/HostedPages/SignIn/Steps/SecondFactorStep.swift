import Grants
import TokenEndpoint

extension SignInStep {
    static let secondFactor = SignInStep(SecondFactorStep())
}

/// The account's second factor: a code of its app, or a recovery code.
struct SecondFactorStep: PageStep {
    let name = "second-factor"
    let number: UInt8 = 5
    let fields: Set<String> = ["totp_code", "recovery_code"]
    let mainField: FormField? = .totpCode

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        func code(_ field: String) -> TypedCode? {
            form[field].flatMap { $0.utf8.count <= TypedCode.maximumBytes ? TypedCode($0) : nil }
        }
        let second: SecondFactorCode
        switch (code("totp_code"), code("recovery_code")) {
        case (nil, nil): return transaction.faulted(.fieldMissing, at: .totpCode)
        case (_?, _?): return transaction.faulted(.wrongSecondFactor, at: .totpCode)
        case (let totp?, nil): second = .totp(totp)
        case (nil, let recovery?):
            second = .recovery(recovery)
            transaction.faultField = .recoveryCode
        }
        return transaction.facts.contains(.byLink)
            ? .proveLink(and: second) : .proveCode(TypedCode(transaction.code), and: second)
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "second-title" }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        guard transaction.faultText(scene.rules) != nil else { return PageValues() }
        let field = transaction.wrongField
        return ["recovery": .flag(field == .recoveryCode), "apart": .flag(field == nil)]
    }
}
