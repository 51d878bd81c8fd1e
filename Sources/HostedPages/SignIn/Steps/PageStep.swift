import Grants
import Persistence
import TokenEndpoint

/// A step of a sign-in: one page with its fields and buttons, and what they ask for.
///
/// A step is a type of its own, a template of its ``name`` with its texts, and an entry in ``SignInStep/allCases``.
protocol PageStep: Sendable {
    /// `data-step`, and the name of its template.
    var name: String { get }
    /// What stands for it in the sealed state. Each step has another.
    var number: UInt8 { get }
    /// The fields of its form, beside `tx` and `action`.
    var fields: Set<String> { get }
    /// The field that its page is about, where a fault of that field is shown.
    var mainField: FormField? { get }
    /// Whether it asks a new user for names and terms.
    var asksNames: Bool { get }
    /// Whether its page names the account that is signed in. It cannot be shown without one, and acts for no other.
    var namesAccount: Bool { get }
    /// Whether it goes on although a sign-in in another tab replaced the session: what was proven belongs to it alone.
    var holdsProof: Bool { get }
    /// Whether its page has the button `cancel`.
    var canBeCancelled: Bool { get }

    /// Judges its form: reads no clock and no store. Changes what the next page shows, and nothing else.
    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove

    /// The key of its heading.
    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String
    /// The key of what it says is wrong in words of its own; `nil`: in the words of every step.
    func wording(_ transaction: SignInTransaction, _ rules: SignInRules) -> String?
    /// What its template shows beside the texts. A ceremony that it begins stays in the transaction.
    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues
    /// Values of placeholders that its texts have otherwise than those of other steps.
    func filling(_ look: PageLook, _ live: BrowserSessionStore.Live?) -> PageLook
}

/// What the values of a page follow from, beside its transaction.
struct PageScene: Sendable {
    let context: SignInContext
    let look: PageLook
    /// Who is signed in, for the steps that name the account.
    let live: BrowserSessionStore.Live?
    let parts: PageParts
    let assets: AssetRoutes

    var rules: SignInRules { context.rules }
}

extension PageStep {
    var fields: Set<String> { [] }
    var mainField: FormField? { nil }
    var asksNames: Bool { false }
    var namesAccount: Bool { false }
    var holdsProof: Bool { false }
    var canBeCancelled: Bool { true }
    func wording(_ transaction: SignInTransaction, _ rules: SignInRules) -> String? { nil }
    func filling(_ look: PageLook, _ live: BrowserSessionStore.Live?) -> PageLook { look }
}

/// A step, as a transaction names it.
struct SignInStep: Sendable, Hashable, CaseIterable {
    /// What it shows and does.
    let page: any PageStep

    /// Every step there is.
    static let allCases: [SignInStep] = [
        address, register, code, link, secondFactor, profile, offerPasskey, consent, continueAs,
    ]

    init(_ page: any PageStep) {
        self.page = page
    }

    /// The step of a number in a sealed state.
    init?(number: UInt8) {
        guard let step = Self.allCases.first(where: { $0.page.number == number }) else { return nil }
        self = step
    }

    var name: String { page.name }
    var fields: Set<String> { page.fields }

    /// Fields of all steps: one that is sent to another step makes the form invalid.
    static let allFields: Set<String> = allCases.reduce(into: []) { $0.formUnion($1.fields) }

    static func == (left: SignInStep, right: SignInStep) -> Bool { left.page.number == right.page.number }

    func hash(into hasher: inout Hasher) { hasher.combine(page.number) }
}
