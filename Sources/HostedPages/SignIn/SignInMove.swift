import Grants
import Persistence

/// What a form asks for: the pure half of a step. ``SignInFlow`` does it.
enum SignInMove: Sendable, Equatable {
    /// Shows a step, as the transaction says it.
    case show
    /// Asks for a code for the transaction's address, or again for the same handle.
    /// `channel`: what carries it to a phone; `nil`: the default, or that of the message before.
    case sendCode(resends: Bool, channel: Channel? = nil, first: PersonName? = nil, last: PersonName? = nil)
    /// Asks for a link.
    case sendLink
    /// Another address: the code or link of a handle is given up.
    case giveUp(handle: String)
    /// A code from the mailbox, with a second factor if there is one.
    case proveCode(String, second: [String: String])
    /// A link that was opened elsewhere.
    case proveLink(second: [String: String])
    case provePasskey(assertion: String)
    /// The names of a new user whose address is proven.
    case register(first: PersonName?, last: PersonName?)
    case enrolPasskey(attestation: String)
    case skipPasskey
    case allow
    /// The signed-in user goes on to the client.
    case goOn
    case deny
    /// Begins again with the same request.
    case restart
}

/// Why a form is refused as a whole: nothing is done.
struct InvalidForm: Error, Equatable {}

extension SignInTransaction {
    /// The form of this step, judged. Changes what the next page shows, and nothing else.
    /// - Parameter form: with `tx` and `action`; anything but the fields of the step makes it invalid.
    mutating func move(_ form: FormParameters, _ rules: SignInRules) throws(InvalidForm) -> SignInMove {
        guard let action = form["action"].flatMap(SignInAction.init) else { throw InvalidForm() }
        for field in SignInStep.allFields.subtracting(step.fields) where form[field] != nil { throw InvalidForm() }
        (fault, faultField, report) = (nil, nil, nil)
        if action == .cancel, step != .consent, step != .offerPasskey { return .deny }
        switch step {
        case .address: return try moveFromAddress(action, form, rules)
        case .register: return try moveFromRegistration(action, form, rules)
        case .code: return try moveFromCode(action, form, rules)
        case .link: return try moveFromLink(action, rules)
        case .secondFactor: return try moveFromSecondFactor(action, form)
        case .profile: return try moveFromProfile(action, form, rules)
        case .offerPasskey: return try moveFromOffer(action, form)
        case .consent: return try moveFromConsent(action)
        case .continueAs: return try moveFromContinueAs(action, rules)
        }
    }

    private mutating func moveFromAddress(
        _ action: SignInAction, _ form: FormParameters, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        if let fixed = rules.fixedAddress, let typed = form["address"], typed != fixed { throw InvalidForm() }
        switch action {
        case .continue where rules.sendsMessages:
            return take(address: rules.fixedAddress ?? form["address"], rules)
        case .passkey where rules.rpID != nil && rules.methods.contains(.passkey):
            address = rules.fixedAddress ?? (form["address"] ?? "").beginning(bytes: 254)
            guard let assertion = form["assertion"], !ceremony.isEmpty else { return faulted(.passkeyFailed) }
            return .provePasskey(assertion: assertion)
        case .register where held != nil:
            guard rules.replacesAccount else { return try closed() }
            return rules.needsProfile ? shown(.profile) : .register(first: nil, last: nil)
        case .register where rules.offersRegistration:
            address = (form["address"] ?? "").beginning(bytes: 254)
            return shown(.register)
        case .register: return try closed()
        default: throw InvalidForm()
        }
    }

    private mutating func moveFromRegistration(
        _ action: SignInAction, _ form: FormParameters, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        guard rules.offersRegistration else { return try closed() }
        let typed = form["address"] ?? ""
        address = typed.beginning(bytes: 254)
        keepProfile(of: form)
        do throws(TypedAddresses.Fault) {
            _ = try rules.registeredAddresses.read(typed)
        } catch {
            return faulted(InputFault(error))
        }
        guard let names = names(form, rules) else { return .show }
        guard !rules.hasTerms || form["terms"] != nil else { return faulted(.fieldMissing, at: .terms) }
        facts.insert(.registers)
        if rules.hasTerms { facts.insert(.acceptsTerms) }
        return take(address: typed, rules, names)
    }

    private mutating func moveFromCode(
        _ action: SignInAction, _ form: FormParameters, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        // No code opens an account any more, and none is sent.
        if facts.contains(.registers), rules.registration == .off, action != .otherAddress { return try closed() }
        switch action {
        case .continue:
            guard Int(wrongCodes) < rules.tries else { return faulted(.noTries) }
            guard let code = form["code"].map(TypedCode.init)?.text, !code.isEmpty else {
                return faulted(.fieldMissing, at: .code)
            }
            return .proveCode(code.beginning(bytes: 16), second: [:])
        case .resend: return send(.sendCode(resends: true), rules)
        case .sms, .voice, .whatsapp:
            guard address.isPhone, let channel = Channel(rawValue: action.rawValue),
                rules.addresses.channels.contains(channel)
            else { throw InvalidForm() }
            return send(.sendCode(resends: true, channel: channel), rules)
        case .link where offersLink(rules): return send(.sendLink, rules)
        case .otherAddress where rules.fixedAddress == nil: return another()
        default: throw InvalidForm()
        }
    }

    private mutating func moveFromLink(
        _ action: SignInAction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .continue: return .proveLink(second: [:])
        case .resend: return send(.sendLink, rules)
        case .code where rules.sendsCodes(to: address): return send(.sendCode(resends: false), rules)
        case .otherAddress where rules.fixedAddress == nil: return another()
        default: throw InvalidForm()
        }
    }

    private mutating func moveFromSecondFactor(
        _ action: SignInAction, _ form: FormParameters
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        var second: [String: String] = [:]
        for name in ["totp_code", "recovery_code"] {
            if let value = form[name], value.utf8.count <= TypedCode.maximumBytes { second[name] = value }
        }
        guard second.count == 1 else {
            return faulted(second.isEmpty ? .fieldMissing : .wrongSecondFactor, at: .totpCode)
        }
        if second["recovery_code"] != nil { faultField = .recoveryCode }
        return facts.contains(.byLink) ? .proveLink(second: second) : .proveCode(code, second: second)
    }

    private mutating func moveFromProfile(
        _ action: SignInAction, _ form: FormParameters, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        guard action == .continue else { throw InvalidForm() }
        keepProfile(of: form)
        let accepts = form["terms"] != nil || facts.contains(.acceptsTerms)
        guard let names = names(form, rules) else { return .show }
        guard !rules.hasTerms || accepts else { return faulted(.fieldMissing, at: .terms) }
        if rules.hasTerms { facts.insert(.acceptsTerms) }
        return .register(first: names.first, last: names.last)
    }

    private mutating func moveFromOffer(
        _ action: SignInAction, _ form: FormParameters
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .skip: return .skipPasskey
        case .create:
            guard let attestation = form["attestation"], !ceremony.isEmpty else { return faulted(.passkeyFailed) }
            return .enrolPasskey(attestation: attestation)
        default: throw InvalidForm()
        }
    }

    private func moveFromConsent(_ action: SignInAction) throws(InvalidForm) -> SignInMove {
        switch action {
        case .allow: return .allow
        case .deny, .cancel: return .deny
        default: throw InvalidForm()
        }
    }

    private mutating func moveFromContinueAs(
        _ action: SignInAction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .continue: return .goOn
        case .otherAccount:
            if rules.provesAddressOnly { facts.insert(.wantsCode) }
            return shown(.address)
        default: throw InvalidForm()
        }
    }
}

extension SignInTransaction {
    /// The next page is that of a step.
    private mutating func shown(_ step: SignInStep) -> SignInMove {
        self.step = step
        return .show
    }

    /// The same page again, which says what is wrong.
    mutating func faulted(_ fault: InputFault, at field: FormField? = nil) -> SignInMove {
        (self.fault, faultField) = (fault, field)
        return .show
    }

    /// Registration was closed since a page offered it.
    private mutating func closed() throws(InvalidForm) -> SignInMove {
        guard step != .address || facts.contains(.offersRegistration) else { throw InvalidForm() }
        (step, handle) = (.address, "")
        facts.subtract([.registers, .acceptsTerms, .offersRegistration])
        return faulted(.registrationClosed)
    }

    /// A typed address: a message goes to it by the first method that the realm has.
    private mutating func take(
        address typed: String?, _ rules: SignInRules, _ names: (first: PersonName?, last: PersonName?) = (nil, nil)
    ) -> SignInMove {
        address = (typed ?? "").beginning(bytes: 254)
        do throws(TypedAddresses.Fault) {
            // Not what is shown of it: the beginning of a long address may be another one.
            address = try rules.addresses.read(typed ?? "").text
        } catch {
            return faulted(InputFault(error))
        }
        let sendsLink =
            !facts.contains(.registers)
            && (rules.prefersLink && rules.sendsLinks(to: address)
                || !address.isPhone && !rules.methods.contains(.emailCode))
        return send(
            sendsLink ? .sendLink : .sendCode(resends: false, first: names.first, last: names.last), rules)
    }

    /// Counts a message against the limits of one sign-in.
    private mutating func send(_ move: SignInMove, _ rules: SignInRules) -> SignInMove {
        if sends == 0 {
            guard Int(addresses) < SignInRules.maximumAddresses else { return faulted(.sendLimit) }
        } else if Int(sends) >= rules.sends(to: address) {
            return faulted(.sendLimit)
        }
        return move
    }

    /// Whether a link may be sent in place of a code: to sign in.
    func offersLink(_ rules: SignInRules) -> Bool {
        rules.sendsLinks(to: address) && !facts.contains(.registers)
    }

    /// Back to the address; the handle of the former one opens nothing any more.
    private mutating func another() -> SignInMove {
        let former = handle
        handle = ""
        sends = 0
        sendsLeft = 0
        wrongCodes = 0
        facts.subtract([.registers, .acceptsTerms])
        step = .address
        return .giveUp(handle: former)
    }
}

extension String {
    /// As many code points as fit into so many bytes: a `Character` can be of any length.
    func beginning(bytes count: Int) -> String {
        var left = count
        let kept = unicodeScalars.prefix {
            left -= UTF8.width($0)
            return left >= 0
        }
        return String(Substring(kept))
    }
}

extension SignInMove {
    /// Whether its statement takes no permit: it is for a browser that is signed in, or whose code was right, or for a
    /// handle that is given up.
    var isUncounted: Bool {
        switch self {
        case .allow, .goOn, .skipPasskey, .deny, .register, .giveUp: true
        case .show, .restart, .sendCode, .sendLink, .proveCode, .proveLink, .provePasskey, .enrolPasskey: false
        }
    }

    /// Whether its time could tell something about an account.
    var dependsOnAccount: Bool {
        switch self {
        case .sendCode, .sendLink, .giveUp, .proveCode, .proveLink, .provePasskey, .register: true
        case .show, .enrolPasskey, .skipPasskey, .allow, .goOn, .deny, .restart: false
        }
    }
}
