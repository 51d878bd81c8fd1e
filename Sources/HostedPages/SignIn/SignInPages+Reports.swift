import Grants
import Texts
import TokenEndpoint

extension SignInPages {
    /// Says what is wrong, at the field that it is about.
    func addFault(to values: inout PageValues, _ transaction: SignInTransaction, _ rules: SignInRules) {
        let field = transaction.wrongField
        switch (transaction.step, field) {
        case (.register, .firstName?), (.register, .lastName?), (.register, .terms?):
            values.set("elsewhere", .flag(true))
        case (.profile, .firstName?), (.profile, .lastName?), (.profile, .terms?): break
        default:
            guard let key = transaction.faultText(rules) else { return }
            values.set("fault", .text(key))
            let isMain =
                switch (transaction.step, field) {
                case (.address, .address?), (.register, .address?), (.code, .code?), (.secondFactor, .totpCode?): true
                default: false
                }
            values.set("invalid", .flag(isMain && !transaction.hasNoTries(rules)))
            if transaction.step == .secondFactor {
                values.set("recovery", .flag(field == .recoveryCode))
                values.set("apart", .flag(field == nil))
            }
        }
    }

    /// The names that a registration asks for and its terms, with what was typed.
    func addNames(
        to values: inout PageValues, _ transaction: SignInTransaction, _ context: SignInContext, asksTerms: Bool
    ) {
        let fields = context.rules.registrationFields
        let typed = transaction.profile
        func add(_ name: String, _ field: FormField, _ members: PageValues) {
            var row = members
            if transaction.wrongField == field, let key = transaction.faultText(context.rules) {
                row.set("wrong", .text(key))
            }
            values.set(name, .rows([row]))
        }
        if fields.firstName != .off {
            add(
                "firstName", .firstName,
                ["isOptional": .flag(fields.firstName == .optional), "value": .value(typed.first)])
        }
        if fields.lastName != .off {
            add(
                "lastName", .lastName, ["isOptional": .flag(fields.lastName == .optional), "value": .value(typed.last)])
        }
        if asksTerms, let terms = context.realm.brand.termsURI {
            add("terms", .terms, ["uri": .value(terms), "accepted": .flag(typed.acceptsTerms)])
        }
    }

    /// Says what came of the wish for another message, and when there is none left.
    func addReport(to values: inout PageValues, _ transaction: SignInTransaction, _ rules: SignInRules) {
        let isLast = transaction.messagesLeft(rules) == 0
        let key: String? =
            switch transaction.report {
            case .again: isLast ? "report-last" : "report-again"
            case .tooSoon: "report-too_soon"
            case nil: isLast ? "report-none" : nil
            }
        if let key { values.set("report", .text(key)) }
    }

    /// Seconds until another message can be asked for, at least one.
    func pause(before transaction: SignInTransaction, _ context: SignInContext) -> Int {
        let left = Double(transaction.sentAt) + Double(context.realm.policy.resendCooldown) - parts.clock()
        return max(1, min(context.realm.policy.resendCooldown, Int(left.rounded(.up))))
    }
}

extension SignInTransaction {
    /// Messages that the present address can still get.
    func messagesLeft(_ rules: SignInRules) -> Int { max(0, rules.sends(to: address) - Int(sends)) }

    /// Whether no code of the present handle is compared any more.
    func hasNoTries(_ rules: SignInRules) -> Bool { step == .code && Int(wrongCodes) >= rules.tries }

    /// Whether no message can go to another address.
    var hasUsedAddresses: Bool { step == .address && sends == 0 && Int(addresses) >= SignInRules.maximumAddresses }

    /// The text that says what is wrong; `nil` when nothing is.
    func faultText(_ rules: SignInRules) -> String? {
        switch (fault, wrongField) {
        case (nil, _) where hasNoTries(rules): "fault-no_tries"
        case (nil, _) where hasUsedAddresses: "fault-address_limit"
        case (.sendLimit?, _) where hasUsedAddresses: "fault-address_limit"
        case (nil, _): nil
        // Without a digit it is no number that was typed wrong, where an address may be typed too.
        case (.phoneInvalid?, _) where rules.addresses.takesMail && !address.contains(where: \.isNumber):
            "fault-address_unclear"
        case (.fieldMissing?, .terms?): "fault-terms_missing"
        case (.fieldMissing?, .firstName?) where !PersonName.isBlank(profile.first): "fault-name_invalid"
        case (.fieldMissing?, .lastName?) where !PersonName.isBlank(profile.last): "fault-name_invalid"
        case (.passkeyFailed?, _) where step == .offerPasskey: "fault-passkey_not_made"
        case (let fault?, _): "fault-\(fault.name)"
        }
    }
}

extension PageValues {
    /// The account that a page names. A long address is set smaller on a narrow page, so that it breaks in no word.
    mutating func set(account: String) {
        set("account", .value(account))
        set("isLong", .flag(account.utf8.count > 22))
    }
}
