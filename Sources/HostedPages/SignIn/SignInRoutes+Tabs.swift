import Grants
import TokenEndpoint

extension SignInRoutes {
    /// When the browser's session is another than this page knows, because a sign-in in another tab replaced or renewed
    /// it: the question whether to go on with the account that is signed in now. A page that names an account must not
    /// act for another one. A client that wants a new sign-in gets none from another tab.
    func signedInMeanwhile(
        _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInTransaction? {
        let (wantsLogin, step) = (context.purpose.wantsLogin, transaction.step.page)
        guard !context.rules.provesAddressOnly, context.realm.hosted.singleSignOnIdle > 0,
            step.namesAccount || !wantsLogin && !step.holdsProof,
            let cookie = context.cookies.session, transaction.session != Array(cookie.hash.prefix(8)),
            try await SignInFlow(parts: parts).signedIn(transaction, context) != nil
        else { return nil }
        var moved = context.begun(from: transaction, at: parts.clock())
        moved.step = wantsLogin ? .address : .continueAs
        moved.session = Array(cookie.hash.prefix(8))
        return moved
    }
}
