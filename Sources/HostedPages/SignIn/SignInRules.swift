import Grants

/// What the configuration allows in a sign-in: the part of realm, App and client that the steps depend on.
struct SignInRules: Sendable, Equatable {
    var methods: Set<Hosted.Method> = [.emailCode]
    var registration = App.Registration.off
    var registrationFields = RegistrationFields(firstName: .off, lastName: .off)
    /// The passkey's RP-ID where the page's host may use it.
    var rpID: String?
    var hasTerms = false
    /// Whether a link is sent first, where codes could be sent too.
    var prefersLink = false
    /// Tries per handle.
    var tries = 5
    /// Messages per address, and addresses per sign-in.
    static let sends = 5
    static let addresses = 3
    /// The address was pushed with the request and is not to be edited.
    var fixedAddress: String?

    /// Whether a message can be sent at all.
    var sendsMessages: Bool { methods.contains(.emailCode) || methods.contains(.magicLink) }
    /// Whether a new user is asked for names or terms after the proof.
    var asksProfile: Bool {
        registration == .jitOnOTP
            && (registrationFields.firstName == .required || registrationFields.lastName == .required || hasTerms)
    }
    /// Whether the page of a registration of its own is offered.
    var offersRegistration: Bool { registration == .explicitEndpoint && methods.contains(.emailCode) }
}
