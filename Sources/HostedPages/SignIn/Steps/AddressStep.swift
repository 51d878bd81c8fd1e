import Grants
import Persistence
import TokenEndpoint

extension SignInStep {
    static let address = SignInStep(AddressStep())
}

/// The first page: an address, or a passkey.
struct AddressStep: PageStep {
    let name = "address"
    let number: UInt8 = 1
    let fields: Set<String> = ["address", "assertion"]
    let mainField: FormField? = .address

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        if let fixed = rules.fixedAddress, let typed = form["address"], typed != fixed { throw InvalidForm() }
        switch action {
        case .continue where rules.sendsMessages:
            return transaction.take(address: rules.fixedAddress ?? form["address"], rules)
        case .passkey where rules.rpID != nil && rules.methods.contains(.passkey):
            transaction.address = rules.fixedAddress ?? (form["address"] ?? "").beginning(bytes: 254)
            guard let assertion = form["assertion"], !transaction.ceremony.isEmpty else {
                return transaction.faulted(.passkeyFailed)
            }
            return .provePasskey(assertion: assertion)
        case .register where transaction.held != nil:
            guard rules.replacesAccount else { return try transaction.closed() }
            return rules.needsProfile ? transaction.shown(.profile) : .register(first: nil, last: nil)
        case .register where rules.offersRegistration:
            transaction.address = (form["address"] ?? "").beginning(bytes: 254)
            return transaction.shown(.register)
        case .register: return try transaction.closed()
        default: throw InvalidForm()
        }
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String {
        if transaction.held != nil { return "second-title" }
        return rules.provesAddressOnly || transaction.facts.contains(.stepsUp) ? "verify-title" : "address-title"
    }

    func wording(_ transaction: SignInTransaction, _ rules: SignInRules) -> String? {
        guard transaction.fault == nil || transaction.fault == .sendLimit else { return nil }
        // No message can go to another address.
        let isOver = transaction.sends == 0 && Int(transaction.addresses) >= SignInRules.maximumAddresses
        return isOver ? "fault-address_limit" : nil
    }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        let rules = scene.rules
        var values: PageValues = [
            "address": .value(transaction.address), "sends": .flag(rules.sendsMessages),
        ]
        values.add(kindOf: rules.addresses)
        values.set("holds", .flag(transaction.held != nil))
        transaction.facts.remove(.offersRegistration)
        if transaction.held != nil ? rules.replacesAccount : rules.offersRegistration {
            transaction.facts.insert(.offersRegistration)
            values.set("registers", .text(transaction.held != nil ? "again-register" : "address-register"))
        }
        values.set("fixed", .flag(rules.fixedAddress != nil))
        if rules.offersPasskeys, let rpID = rules.rpID, let client = scene.context.purpose.client {
            let begun = scene.parts.passkeys.beginOnPage(realm: scene.context.realm, client: client, rpID: rpID)
            transaction.ceremony = begun.ceremony.encoded
            values.set("passkey", .flag(true))
            values.set("options", .value(String(decoding: begun.options, as: UTF8.self)))
            values.set("script", .value(scene.assets.name(of: .passkey)))
        }
        return values
    }
}
