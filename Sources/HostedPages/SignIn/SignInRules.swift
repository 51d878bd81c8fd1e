import Grants
import Persistence

/// What the configuration allows in a sign-in: the part of realm, App and client that the steps depend on.
struct SignInRules: Sendable, Equatable {
    var methods: Set<Hosted.Method> = [.emailCode]
    /// What may be typed where an address is asked for.
    var addresses = TypedAddresses.mail
    var registration = App.Registration.off
    var registrationFields = RegistrationFields(firstName: .off, lastName: .off)
    /// The passkey's RP-ID where the page's host may use it.
    var rpID: String?
    var hasTerms = false
    /// Whether a link is sent first, where codes could be sent too.
    var prefersLink = false
    /// Whether links go to phones too: where a client wants a number proven.
    var linksPhones = false
    /// Whether an address is to be proven, whatever account it is of.
    var wantsAddress = false
    /// What carries the first message to a phone, where the realm has it.
    var channel: Channel?
    /// Whether a number that may have passed to the person can become that of a new account.
    var replacesAccount = false
    /// Tries per handle.
    var tries = 5
    /// Mails per address, and addresses per sign-in.
    static let mails = 5
    static let maximumAddresses = 3
    /// Whether the proof of an address alone is asked for. The page then signs no user in.
    var provesAddressOnly = false
    /// The address was pushed with the request and is not to be edited.
    var fixedAddress: String?

    /// Whether a message can be sent at all.
    var sendsMessages: Bool { addresses.takesMail || addresses.takesPhones }
    /// Messages that may go to an address, in the form in which it was read.
    func sends(to address: String) -> Int { address.isPhone ? addresses.phoneSends : Self.mails }
    /// Whether a new user is asked for names or terms after the proof.
    var asksProfile: Bool { registration == .jitOnOTP && needsProfile }
    /// Whether an account is made with names or terms only.
    var needsProfile: Bool {
        registrationFields.firstName == .required || registrationFields.lastName == .required || hasTerms
    }
    /// Whether codes may be sent to an address.
    func sendsCodes(to address: String) -> Bool { methods.contains(address.isPhone ? .phoneCode : .emailCode) }
    /// Whether links may be sent to an address.
    func sendsLinks(to address: String) -> Bool {
        methods.contains(.magicLink) && (!address.isPhone || linksPhones && addresses.channels.contains(.sms))
    }
    /// Whether the page of a registration of its own is offered: a code proves the address.
    var offersRegistration: Bool {
        registration == .explicitEndpoint && (registeredAddresses.takesMail || registeredAddresses.takesPhones)
    }
    /// What may be typed there: no account is made by a link.
    var registeredAddresses: TypedAddresses {
        addresses.taking(mail: methods.contains(.emailCode), phones: methods.contains(.phoneCode))
    }
}

extension String {
    /// Whether it is a phone number in the form in which one was read: an address with a `+` has an `@` too.
    var isPhone: Bool { hasPrefix("+") && !contains("@") }
}
