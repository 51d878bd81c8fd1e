import Grants

/// What was typed where a registration asks for a name and consent.
struct TypedProfile: Sendable, Equatable {
    var first = ""
    var last = ""
    var acceptsTerms = false

    /// Bytes of a name that a page shows again.
    static let maximumName = 240
}

extension SignInTransaction {
    /// What was typed stays on the page, whatever comes of the form.
    mutating func keepProfile(of form: FormParameters) {
        profile = TypedProfile(
            first: (form["first_name"] ?? "").beginning(bytes: TypedProfile.maximumName),
            last: (form["last_name"] ?? "").beginning(bytes: TypedProfile.maximumName),
            acceptsTerms: form["terms"] != nil)
    }

    /// The names of a form. - Returns: `nil` when one is missing that is required, or one is no name: see the fault.
    mutating func names(
        _ form: FormParameters, _ rules: SignInRules
    ) -> (first: PersonName?, last: PersonName?)? {
        func name(_ field: String, _ rule: RegistrationFields.Rule) -> PersonName?? {
            guard rule != .off else { return .some(nil) }
            let typed = form[field] ?? ""
            guard !PersonName.isBlank(typed) else { return rule == .required ? .none : .some(nil) }
            return PersonName(typed).map { .some($0) } ?? .none
        }
        guard let first = name("first_name", rules.registrationFields.firstName) else {
            _ = faulted(.fieldMissing, at: .firstName)
            return nil
        }
        guard let last = name("last_name", rules.registrationFields.lastName) else {
            _ = faulted(.fieldMissing, at: .lastName)
            return nil
        }
        return (first, last)
    }
}
