import Grants
import Persistence
import Texts
import TokenEndpoint

/// Signs a person in: sends messages, redeems factors, and goes on to what the sign-in is for when nothing is due.
struct SignInFlow: PageFlow {
    let parts: PageParts

    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        if let outcome = try await common(move, transaction, context) { return outcome }
        switch move {
        case .sendCode(let resends, let channel, let first, let last):
            let registers = transaction.facts.contains(.registers)
            return .next(
                try await send(
                    registers ? parts.mailedRegistration : parts.sentCode, by: channel, resends: resends, first, last,
                    to: .code, transaction, context), nil)
        case .sendLink:
            var sent = try await send(
                parts.sentLink, by: .sms, resends: transaction.step == .link, nil, nil, to: .link, transaction,
                context)
            if sent.step == .link, sent.fault == nil {
                sent.link = nil
                try await keep(sent, context)
            }
            return .next(sent, nil)
        case .proveCode(let code, let second): return try await prove(code, and: second, transaction, context)
        case .proveLink(let second): return try await prove(linkAnd: second, transaction, context)
        case .provePasskey(let assertion): return try await prove(passkey: assertion, transaction, context)
        case .register(let first, let last): return try await register(first, last, transaction, context)
        case .goOn: return try await confirm(transaction, context)
        case .allow: return try await confirm(transaction, context, consents: true)
        case .own(let act): return try await act.perform(self, transaction, context)
        case .show, .restart, .deny, .giveUp: throw PageError(.invalidRequest)
        }
    }

    // MARK: Proofs

    private func prove(
        _ code: TypedCode, and second: SecondFactorCode?, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        var transaction = transaction
        do {
            return try await prove(
                SignIn(by: parts.code, parts.signIn),
                opened(transaction.handle, context).map { OTPFactor.Presented(code, of: $0) }, and: second,
                transaction.address.isPhone ? .phone : .email, transaction, context)
        } catch let error as TokenError where error.code == .invalidGrant {
            switch error {
            case .secondFactorRequired:
                transaction.forgetProof()
                transaction.code = code.text.beginning(bytes: Self.longestCode)
                transaction.step = .secondFactor
            case .secondFactorInvalid: transaction.fault = .wrongSecondFactor
            default:
                transaction.countWrongCode(context.rules)
            }
            return .next(transaction, nil)
        }
    }

    /// Bytes of a code that waits for the second factor. No code that was right is longer.
    private static let longestCode = 16

    /// A link: opened in this browser, or confirmed from elsewhere.
    func prove(
        linkAnd second: SecondFactorCode?, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        var transaction = transaction
        let presented = opened(transaction.handle, context).map { handle in
            transaction.opened.map { MagicLinkFactor.Presented.link($0, handle: handle) } ?? .handle(handle)
        }
        do {
            return try await prove(
                SignIn(by: parts.link, parts.signIn), presented, and: second,
                transaction.address.isPhone ? .phone : .email, transaction, context)
        } catch let error as TokenError {
            switch (error.code, error) {
            case (.invalidGrant, .secondFactorRequired):
                transaction.facts.insert(.byLink)
                transaction.step = .secondFactor
            case (.invalidGrant, .secondFactorInvalid): transaction.fault = .wrongSecondFactor
            case (.authorizationPending, _), (.slowDown, _): transaction.link = .pending
            case (.accessDenied, _): transaction.link = .denied
            case (.invalidGrant, _):
                transaction.forgetProof()
                transaction.step = .link
                transaction.link = .expired
            default: throw error
            }
            return .next(transaction, nil)
        }
    }

    private func prove(
        passkey assertion: String, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        let redemption = try context.redemption
        do {
            return try await prove(
                SignIn(by: parts.passkey, parts.signIn),
                PasskeyCeremony(encoded: transaction.ceremony).flatMap {
                    parts.passkey.answer(assertion, to: $0, redemption)
                }, and: nil, .passkey, transaction, context)
        } catch let error as TokenError where error.code == .invalidGrant {
            var transaction = transaction
            transaction.fault = .passkeyFailed
            return .next(transaction, nil)
        }
    }

    /// Redeems a factor: the statement signs the browser in and answers the request, if there is one.
    private func prove<F: Factor>(
        _ signIn: SignIn<F>, _ presented: F.Presented?, and second: SecondFactorCode?, _ proof: PageSignIn.Proof,
        _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        let opening = NewBrowserSession(proof, transaction, context, parts)
        switch try await signIn.verifyOnPage(
            presented, and: second, try context.redemption, opening: opening.session(amr:))
        {
        case .signedIn(let signedIn, let outcome):
            let end = signedIn.sessionExpiresAt - signedIn.now
            return try await answer(outcome, opening, until: end, transaction, context)
        case .profileDue:
            var transaction = transaction
            transaction.step = .profile
            // The account will be that of the address which was proven last.
            transaction.held = nil
            return .next(transaction, nil)
        case .registrationClosed: return .next(context.closed(from: transaction, at: parts.clock()), nil)
        case .secondProofDue:
            guard let held = HeldNumber(opened(transaction.handle, context)) else {
                throw TokenError.unavailable("a number that is held without its handle")
            }
            var transaction = transaction
            transaction.proveAgain(held)
            return .next(transaction, nil)
        }
    }

    private func register(
        _ first: PersonName?, _ last: PersonName?, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        var proven = transaction
        if let held = transaction.held { (proven.address, proven.handle, proven.held) = (held.number, "", nil) }
        let opening = NewBrowserSession(proven.address.isPhone ? .phone : .email, proven, context, parts)
        let handle = opened(transaction.handle, context)
        let outcome = try await parts.browserSessions.register(
            realm: context.realm.id, client: try context.client.key,
            handle: transaction.held?.handle ?? handle?.id ?? [], firstName: first?.text, lastName: last?.text,
            session: opening.session(amr: MessageAddress.amr(by: transaction.held?.channel ?? handle?.channel)))
        switch outcome {
        case .signedInOnPage(let outcome, _, let now, let expiresAt):
            return try await answer(outcome, opening, until: expiresAt - now, transaction, context)
        case .registrationClosed: return .next(context.closed(from: transaction, at: parts.clock()), nil)
        default:
            // The proof has expired or was used: it begins again with a new code.
            var transaction = context.begun(from: transaction, at: parts.clock())
            transaction.fault = .wrongCode
            return .next(transaction, nil)
        }
    }

    /// What follows from what the statement of a proof said.
    /// - Parameter end: seconds until the browser's session ends.
    func answer(
        _ outcome: PageOutcome, _ opening: NewBrowserSession, until end: Double, _ transaction: SignInTransaction,
        _ context: SignInContext
    ) async throws -> FlowOutcome {
        let answer = try await context.purpose.answer(outcome, opening.code)
        var transaction = transaction
        let cookie = opening.cookie
        transaction.session = Array(cookie.hash.prefix(8))
        transaction.facts.insert(.proved)
        // Nothing of a factor that was redeemed is carried on, and what was accepted was that user's.
        transaction.forgetProof()
        (transaction.handle, transaction.ceremony, transaction.held) = ("", [], nil)
        transaction.facts.subtract([.registers, .acceptsTerms])
        guard context.realm.hosted.singleSignOnIdle > 0 else {
            transaction.ownSession = cookie.text
            return try await next(answer, transaction, context, cookie: nil, hasProved: true)
        }
        return try await next(
            answer, transaction, context, cookie: SessionCookie(cookie, of: context.realm, until: end),
            hasProved: true)
    }

    // MARK: The signed-in browser

    /// Who is signed in in this browser.
    func signedIn(
        _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> BrowserSessionStore.Live? {
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession) else { return nil }
        try parts.countLookUp(context.exchange)
        // A page that names the account names the address that is to be proven.
        let wanted = context.rules.wantsAddress ? context.purpose.request(issuing: nil) : nil
        return try await parts.browserSessions.answer(
            realm: context.realm.id, cookieHash: cookie.hash, host: context.exchange.host, request: wanted
        ).session
    }

    /// Goes on with the session that the browser has.
    func confirm(
        _ transaction: SignInTransaction, _ context: SignInContext, consents: Bool = false
    ) async throws -> FlowOutcome {
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession) else {
            return again(transaction, context)
        }
        let (answer, renewal) = try await context.purpose.confirm(
            cookie, host: context.exchange.host, isProved: transaction.hasProved(cookie), consents: consents)
        let keeps = context.realm.hosted.singleSignOnIdle > 0
        return try await next(answer, transaction, context, cookie: keeps ? renewal : nil, hasProved: false)
    }

    /// The page that is due, or the end.
    /// - Parameter hasProved: a factor was proven just now: what it does not meet, this user cannot meet here.
    func next(
        _ answer: PurposeAnswer, _ transaction: SignInTransaction, _ context: SignInContext,
        cookie: SessionCookie?, hasProved: Bool
    ) async throws -> FlowOutcome {
        var transaction = transaction
        switch answer {
        case .end(let end):
            transaction.askAgain()
            return .end(end, cookie, from: transaction)
        case .due(.acr) where hasProved && context.stepUpAddresses != nil: transaction.stepUp()
        case .due(.acr) where hasProved: return .end(try await context.purpose.refuse(.unmet), cookie)
        case .due(.account) where hasProved: return .end(try await context.purpose.refuse(.otherUser), cookie)
        case .due(.consent): transaction.step = .consent
        case .due(.offerPasskey): transaction.step = .offerPasskey
        case .due(.continue): transaction.step = .continueAs
        // A pushed request has one answer, which another form of this browser got.
        case .due(.used): transaction.askAgain()
        case .due: transaction.step = .address
        }
        return .next(transaction, cookie)
    }
}
