import Grants
import Persistence
import Texts
import TokenEndpoint

/// Does what a form asks for: sends messages, redeems factors, and answers the authorization request when nothing is
/// due.
struct SignInFlow: Sendable {
    let parts: PageParts

    /// What a form led to.
    enum Outcome: Sendable {
        /// The next page, and the session cookie that the browser gets.
        case next(SignInTransaction, SessionCookie?)
        /// The response for the client, the session cookie, and the page that led there, if it gives a code.
        case response(AuthorizationResponse, SessionCookie?, from: SignInTransaction? = nil)
    }

    /// - Throws: `TokenError` for limits and faults, `AuthorizationRefusal`, or what the database threw. Then nothing
    ///   was done.
    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> Outcome {
        if move.isUncounted { try parts.countLookUp(context.exchange) }
        if case .giveUp(let former) = move {
            if let handle = opened(former, context)?.id {
                try await parts.pageStates.giveUp(realm: context.realm.id, handle: handle)
            }
            return .next(transaction, nil)
        }
        if let outcome = try await otherFlow(move, transaction, context) { return outcome }
        var transaction = transaction
        switch move {
        case .show, .giveUp: return .next(transaction, nil)
        case .restart: return .next(context.begun(from: transaction, at: parts.clock()), nil)
        case .deny:
            let response = try await parts.authorizations.refuse(
                context.request, .accessDenied, "The user refused.", realm: context.realm)
            return .response(response, nil)
        case .sendCode(let resends, let channel, let first, let last):
            let registers = transaction.facts.contains(.registers)
            try await send(
                registers ? parts.mailedRegistration : parts.sentCode, by: channel, resends: resends, first, last,
                &transaction, context)
            transaction.arrive(at: .code)
            return .next(transaction, nil)
        case .sendLink:
            try await send(
                parts.sentLink, by: .sms, resends: transaction.step == .link, nil, nil, &transaction, context)
            transaction.arrive(at: .link)
            transaction.link = nil
            try await keep(transaction, context)
            return .next(transaction, nil)
        case .proveCode(let code, let second):
            return try await prove(code: code, second, transaction, context)
        case .proveLink(let second): return try await prove(linkWith: second, transaction, context)
        case .provePasskey(let assertion): return try await prove(passkey: assertion, transaction, context)
        case .register(let first, let last): return try await register(first, last, transaction, context)
        case .enrolPasskey(let attestation): return try await enrol(attestation, transaction, context)
        case .skipPasskey, .goOn: return try await confirm(transaction, context)
        case .allow: return try await confirm(transaction, context, consents: true)
        }
    }

    // MARK: Proofs

    private func prove(
        code: String, _ second: [String: String], _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> Outcome {
        var transaction = transaction
        do {
            return try await prove(
                SignIn(by: parts.code, parts.signIn),
                Self.form([("auth_session", transaction.handle), ("otp_code", code)], second),
                transaction.address.isPhone ? .phone : .email, transaction, context)
        } catch let error as TokenError where error.code == .invalidGrant {
            switch error {
            case .secondFactorRequired:
                transaction.forgetProof()
                transaction.code = code
                transaction.step = .secondFactor
            case .secondFactorInvalid: transaction.fault = .wrongSecondFactor
            default:
                transaction.countWrongCode(context.rules)
            }
            return .next(transaction, nil)
        }
    }

    /// A link: opened in this browser, or confirmed from elsewhere.
    func prove(
        linkWith second: [String: String], _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> Outcome {
        var transaction = transaction
        var first = [("auth_session", transaction.handle)]
        if let link = transaction.opened {
            first += [("user_id", link.user.description), ("magic_token", link.tokenText)]
        }
        do {
            return try await prove(
                SignIn(by: parts.link, parts.signIn), Self.form(first, second),
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
    ) async throws -> Outcome {
        var transaction = transaction
        do {
            let ceremony = PasskeyCeremony(encoded: transaction.ceremony)
            let handed = try ceremony?.text(realm: context.realm.id, keyring: parts.keyring) ?? ""
            return try await prove(
                SignIn(by: parts.passkey, parts.signIn),
                Self.form([("ceremony_id", handed), ("assertion", assertion)], [:]), .passkey,
                transaction, context)
        } catch let error as TokenError where error.code == .invalidGrant {
            transaction.fault = .passkeyFailed
            return .next(transaction, nil)
        }
    }

    /// Redeems a factor: the statement signs the browser in and answers the request.
    private func prove<F: Factor>(
        _ signIn: SignIn<F>, _ form: FormParameters, _ proof: PageSignIn.Proof, _ transaction: SignInTransaction,
        _ context: SignInContext
    ) async throws -> Outcome {
        let opening = NewBrowserSession(proof, transaction, context, parts)
        switch try await signIn.verifyOnPage(form, context.redemption, opening: opening.session(amr:)) {
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
    ) async throws -> Outcome {
        var proven = transaction
        if let held = transaction.held { (proven.address, proven.handle, proven.held) = (held.number, "", nil) }
        let opening = NewBrowserSession(proven.address.isPhone ? .phone : .email, proven, context, parts)
        let handle = opened(transaction.handle, context)
        let outcome = try await parts.browserSessions.register(
            realm: context.realm.id, client: context.request.client.key,
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

    /// What the statement of a proof said about the request.
    /// - Parameter end: seconds until the browser's session ends.
    private func answer(
        _ outcome: PageOutcome, _ opening: NewBrowserSession, until end: Double, _ transaction: SignInTransaction,
        _ context: SignInContext
    ) async throws -> Outcome {
        let answer = try await parts.authorizations.answer(
            context.request, outcome, opening.code, nil, realm: context.realm)
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
        // A page that names the account names the address that the client wants proven.
        let wanted = context.request.wantedProof == nil ? nil : context.request.codeRequest
        return try await parts.browserSessions.answer(
            realm: context.realm.id, cookieHash: cookie.hash, host: context.exchange.host, request: wanted
        ).session
    }

    /// Goes on to the client with the session that the browser has.
    private func confirm(
        _ transaction: SignInTransaction, _ context: SignInContext, consents: Bool = false
    ) async throws -> Outcome {
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession) else {
            return .next(context.begun(from: transaction, at: parts.clock()), nil)
        }
        let (answer, renewal) = try await parts.authorizations.confirm(
            context.request, cookie: cookie, host: context.exchange.host, realm: context.realm,
            isProved: transaction.hasProved(cookie), consents: consents)
        let keeps = context.realm.hosted.singleSignOnIdle > 0
        return try await next(answer, transaction, context, cookie: keeps ? renewal : nil, hasProved: false)
    }

    private func enrol(
        _ attestation: String, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> Outcome {
        guard let live = try await signedIn(transaction, context) else {
            return .next(context.begun(from: transaction, at: parts.clock()), nil)
        }
        var transaction = transaction
        do {
            _ = try await parts.passkeys.enrol(
                PasskeyCeremony(encoded: transaction.ceremony), attestation: Array(attestation.utf8),
                realm: context.realm,
                owner: Passkeys.Owner(
                    client: context.request.client, session: live.id, user: live.user, pageOrigin: context.origin),
                source: context.exchange.source
            ) { model in
                PasskeyName.text(
                    model: model, userAgent: context.exchange.userAgent, time: parts.clock(),
                    parts.catalogue.texts(in: context.language))
            }
        } catch is Passkeys.EnrolmentFailure {
            transaction.fault = .passkeyFailed
            return .next(transaction, nil)
        }
        return try await confirm(transaction, context)
    }

    /// The page that is due, or the response.
    /// - Parameter hasProved: a factor was proven just now: what it does not meet, this user cannot meet here.
    func next(
        _ answer: Authorizations.Answer, _ transaction: SignInTransaction, _ context: SignInContext,
        cookie: SessionCookie?, hasProved: Bool
    ) async throws -> Outcome {
        var transaction = transaction
        switch answer {
        case .response(let response): return .response(response, cookie, from: transaction)
        case .page(.acr, _) where hasProved && context.stepUpAddresses != nil: transaction.stepUp()
        case .page(.acr, _) where hasProved:
            return .response(
                try await parts.authorizations.refuse(
                    context.request, .unmetAuthenticationRequirements, "The sign-in does not meet acr_values.",
                    realm: context.realm), cookie)
        case .page(.account, _) where hasProved:
            return .response(
                try await parts.authorizations.refuse(
                    context.request, .loginRequired, "Another user signed in.", realm: context.realm), cookie)
        case .page(.consent, _): transaction.step = .consent
        case .page(.offerPasskey, _): transaction.step = .offerPasskey
        case .page(.continue, _): transaction.step = .continueAs
        case .page: transaction.step = .address
        }
        return .next(transaction, cookie)
    }

    private static func form(_ pairs: [(String, String)], _ second: [String: String]) -> FormParameters {
        FormParameters(pairs.map { (name: $0.0, value: $0.1) } + second.map { (name: $0.key, value: $0.value) })
            ?? FormParameters()
    }
}
