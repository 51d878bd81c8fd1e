import Grants
import Persistence
import Texts
import TokenEndpoint

extension SignInStep {
    static let consent = SignInStep(ConsentStep())
}

/// What a client wants, for its user to allow.
struct ConsentStep: PageStep {
    let name = "consent"
    let number: UInt8 = 8
    let namesAccount = true

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .allow: return .allow
        case .deny: return .deny
        default: throw InvalidForm()
        }
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "consent-title" }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        let texts = scene.look.texts
        let rows = scene.context.purpose.scope.map { scope -> PageValues in
            let known = texts.filling(["scope": scope])
            let text = known["scope-\(scope)"]
            // What the administrator says it is for, where the catalogue does not know it.
            let isKnown = text != "scope-\(scope)"
            let description = scene.context.realm.scopes[scope]?.description
            return ["text": .value(isKnown ? text : description ?? known["scope-other"])]
        }
        return ["scopes": .rows(rows)]
    }

    func filling(_ look: PageLook, _ live: BrowserSessionStore.Live?) -> PageLook {
        look.filling(["address": live?.address ?? ""])
    }
}
