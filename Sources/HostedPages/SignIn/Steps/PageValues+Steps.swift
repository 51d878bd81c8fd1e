import Grants
import Texts
import TokenEndpoint

extension PageValues {
    /// Says what is wrong, at the field that it is about.
    mutating func add(faultOf transaction: SignInTransaction, _ rules: SignInRules) {
        let step = transaction.step.page
        let field = transaction.wrongField
        if step.asksNames, [.firstName, .lastName, .terms].contains(field) {
            // It is said at the field itself (``add(namesOf:_:asksTerms:)``).
            set("elsewhere", .flag(true))
            return
        }
        guard let key = transaction.faultText(rules) else { return }
        set("fault", .text(key))
        set("invalid", .flag(field != nil && field == step.mainField && !transaction.hasNoTries(rules)))
    }

    /// The names that a registration asks for and its terms, with what was typed.
    mutating func add(namesOf transaction: SignInTransaction, _ context: SignInContext, asksTerms: Bool) {
        let fields = context.rules.registrationFields
        let typed = transaction.profile
        func row(_ field: FormField, _ members: PageValues) -> Value {
            var row = members
            if transaction.wrongField == field, let key = transaction.faultText(context.rules) {
                row.set("wrong", .text(key))
            }
            return .rows([row])
        }
        if fields.firstName != .off {
            let isOptional = fields.firstName == .optional
            set(
                "firstName",
                row(.firstName, ["isOptional": .flag(isOptional), "value": .value(typed.first)]))
        }
        if fields.lastName != .off {
            let isOptional = fields.lastName == .optional
            set("lastName", row(.lastName, ["isOptional": .flag(isOptional), "value": .value(typed.last)]))
        }
        if asksTerms, let terms = context.realm.brand.termsURI {
            set("terms", row(.terms, ["uri": .value(terms), "accepted": .flag(typed.acceptsTerms)]))
        }
    }

    /// Says what came of the wish for another message, and when there is none left.
    mutating func add(reportOf transaction: SignInTransaction, _ rules: SignInRules) {
        let isLast = transaction.messagesLeft(rules) == 0
        let key: String? =
            switch transaction.report {
            case .again: isLast ? "report-last" : "report-again"
            case .tooSoon: "report-too_soon"
            case nil: isLast ? "report-none" : nil
            }
        if let key { set("report", .text(key)) }
    }

    /// What kind of address the field takes.
    mutating func add(kindOf addresses: TypedAddresses) {
        // A field of type `email` refuses what copying brings around an address; the keyboard comes of `inputmode`.
        let (kind, keyboard, label) =
            switch (addresses.takesMail, addresses.takesPhones) {
            case (true, false): ("text", "email", "address-label")
            case (false, _): ("tel", "tel", "address-label-phone")
            case (true, true): ("text", "text", "address-label-any")
            }
        set("kind", .value(kind))
        set("keyboard", .value(keyboard))
        set("label", .text(label))
    }

    /// The account that a page names. A long address is set smaller on a narrow page, so that it breaks in no word.
    mutating func set(account: String) {
        set("account", .value(account))
        set("isLong", .flag(account.utf8.count > 22))
    }
}

extension PageScene {
    /// The handle of the last message, opened.
    func handle(of transaction: SignInTransaction) -> AuthSessionHandle? {
        AuthSessionHandle(transaction.handle, realm: context.realm.id, keyring: parts.keyring)
    }
}

extension SignInTransaction {
    /// Messages that the present address can still get.
    func messagesLeft(_ rules: SignInRules) -> Int { max(0, rules.sends(to: address) - Int(sends)) }

    /// The text that says what is wrong; `nil` when nothing is.
    func faultText(_ rules: SignInRules) -> String? {
        if let wording = step.page.wording(self, rules) { return wording }
        return switch (fault, wrongField) {
        case (nil, _): nil
        // Without a digit it is no number that was typed wrong, where an address may be typed too.
        case (.phoneInvalid?, _) where rules.addresses.takesMail && !address.contains(where: \.isNumber):
            "fault-address_unclear"
        case (.fieldMissing?, .terms?): "fault-terms_missing"
        case (.fieldMissing?, .firstName?) where !PersonName.isBlank(profile.first): "fault-name_invalid"
        case (.fieldMissing?, .lastName?) where !PersonName.isBlank(profile.last): "fault-name_invalid"
        case (let fault?, _): "fault-\(fault.name)"
        }
    }
}
