import Grants
import Persistence

/// What a form asks for: the pure half of a step. A ``PageFlow`` does it.
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
    /// A code from the mailbox or the phone, with a second factor if there is one.
    case proveCode(TypedCode, and: SecondFactorCode? = nil)
    /// A link that was opened elsewhere.
    case proveLink(and: SecondFactorCode? = nil)
    case provePasskey(assertion: String)
    /// The names of a new user whose address is proven.
    case register(first: PersonName?, last: PersonName?)
    case allow
    /// The signed-in user goes on to what the sign-in is for.
    case goOn
    case deny
    /// Begins again for the same purpose.
    case restart
    /// What one step alone asks for.
    case own(StepAct)
}

/// What one step alone asks for, and how it is done. It counts the statements that it makes.
struct StepAct: Sendable, Equatable {
    /// Acts of one name are equal.
    let name: String
    let perform: @Sendable (SignInFlow, SignInTransaction, SignInContext) async throws -> FlowOutcome

    init(
        _ name: String,
        _ perform: @escaping @Sendable (SignInFlow, SignInTransaction, SignInContext) async throws -> FlowOutcome
    ) {
        self.name = name
        self.perform = perform
    }

    static func == (left: StepAct, right: StepAct) -> Bool { left.name == right.name }
}

/// Why a form is refused as a whole: nothing is done.
struct InvalidForm: Error, Equatable {}

extension SignInTransaction {
    /// The form of this step, judged. Changes what the next page shows, and nothing else.
    /// - Parameter form: with `tx` and `action`; anything but the fields of the step makes it invalid.
    mutating func move(_ form: FormParameters, _ rules: SignInRules) throws(InvalidForm) -> SignInMove {
        guard let action = form["action"].flatMap(SignInAction.init(named:)) else { throw InvalidForm() }
        for field in SignInStep.allFields.subtracting(step.fields) where form[field] != nil { throw InvalidForm() }
        (fault, faultField, report) = (nil, nil, nil)
        if action == .cancel, step.page.canBeCancelled { return .deny }
        return try step.page.move(action, form, &self, rules)
    }
}

extension SignInTransaction {
    /// The next page is that of a step.
    mutating func shown(_ step: SignInStep) -> SignInMove {
        self.step = step
        return .show
    }

    /// The same page again, which says what is wrong.
    mutating func faulted(_ fault: InputFault, at field: FormField? = nil) -> SignInMove {
        (self.fault, faultField) = (fault, field)
        return .show
    }

    /// Registration was closed since a page offered it.
    mutating func closed() throws(InvalidForm) -> SignInMove {
        guard step != .address || facts.contains(.offersRegistration) else { throw InvalidForm() }
        (step, handle) = (.address, "")
        facts.subtract([.registers, .acceptsTerms, .offersRegistration])
        return faulted(.registrationClosed)
    }

    /// A typed address: a message goes to it by the first method that the realm has.
    mutating func take(
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
    mutating func send(_ move: SignInMove, _ rules: SignInRules) -> SignInMove {
        if sends == 0 {
            guard Int(addresses) < SignInRules.maximumAddresses else { return faulted(.sendLimit) }
        } else if Int(sends) >= rules.sends(to: address) {
            return faulted(.sendLimit)
        }
        return move
    }

    /// Back to the address; the handle of the former one opens nothing any more.
    mutating func another() -> SignInMove {
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
        case .allow, .goOn, .deny, .register, .giveUp: true
        case .show, .restart, .sendCode, .sendLink, .proveCode, .proveLink, .provePasskey, .own: false
        }
    }

    /// Whether its time could tell something about an account.
    var dependsOnAccount: Bool {
        switch self {
        case .sendCode, .sendLink, .giveUp, .proveCode, .proveLink, .provePasskey, .register: true
        case .show, .own, .allow, .goOn, .deny, .restart: false
        }
    }
}
