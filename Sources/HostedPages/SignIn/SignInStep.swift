import Grants

/// A step of a sign-in: one page, with its fields and buttons.
enum SignInStep: UInt8, Sendable, CaseIterable {
    case address = 1
    case register
    case code
    case link
    case secondFactor
    case profile
    case offerPasskey
    case consent
    case continueAs

    /// `data-step`.
    var name: String {
        switch self {
        case .address: "address"
        case .register: "register"
        case .code: "code"
        case .link: "link"
        case .secondFactor: "second-factor"
        case .profile: "profile"
        case .offerPasskey: "offer-passkey"
        case .consent: "consent"
        case .continueAs: "continue-as"
        }
    }

    /// The fields of its form, beside `tx` and `action`.
    var fields: Set<String> {
        switch self {
        case .address: ["address", "assertion"]
        case .register: ["address", "first_name", "last_name", "terms"]
        case .code: ["code"]
        case .secondFactor: ["totp_code", "recovery_code"]
        case .profile: ["first_name", "last_name", "terms"]
        case .offerPasskey: ["attestation"]
        case .link, .consent, .continueAs: []
        }
    }

    /// Fields of all steps: one that is sent to another step makes the form invalid.
    static let allFields: Set<String> = allCases.reduce(into: []) { $0.formUnion($1.fields) }
}

/// A button of a form, as `action` names it.
enum SignInAction: String, Sendable {
    case `continue`, passkey, register, cancel, resend, link, code, create, skip, allow, deny, restart
    case sms, voice, whatsapp
    case otherAddress = "other-address"
    case otherAccount = "other-account"
}

/// A field that a fault can be about.
enum FormField: UInt8, Sendable {
    case address = 1
    case firstName
    case lastName
    case terms
    case code
    case totpCode
    case recoveryCode
}

/// What a page says of the message that its form asked for.
enum SendReport: UInt8, Sendable {
    /// It was sent again.
    case again = 1
    /// The last one is too young: nothing was sent.
    case tooSoon
}

/// What was wrong with the last form, as `data-error` says it.
enum InputFault: UInt8, Sendable, CaseIterable {
    case addressInvalid = 1
    case addressRefused
    case wrongCode
    case noTries
    case sendLimit
    case wrongSecondFactor
    case fieldMissing
    case passkeyFailed
    case rateLimited
    case unavailable
    case phoneInvalid
    case phoneUnsupported
    case registrationClosed

    var name: String {
        switch self {
        case .addressInvalid: "address_invalid"
        case .addressRefused: "address_refused"
        case .phoneInvalid: "phone_invalid"
        case .phoneUnsupported: "phone_unsupported"
        case .wrongCode: "wrong_code"
        case .noTries: "no_tries"
        case .sendLimit: "send_limit"
        case .wrongSecondFactor: "wrong_second_factor"
        case .fieldMissing: "field_missing"
        case .passkeyFailed: "passkey_failed"
        case .rateLimited: "rate_limited"
        case .unavailable: "temporarily_unavailable"
        case .registrationClosed: "registration_closed"
        }
    }
}

extension InputFault {
    /// The field that it is about, where the step has one such field.
    var field: FormField? {
        switch self {
        case .addressInvalid, .addressRefused, .phoneInvalid, .phoneUnsupported: .address
        case .wrongCode: .code
        case .wrongSecondFactor: .totpCode
        case .noTries, .sendLimit, .fieldMissing, .passkeyFailed, .rateLimited, .unavailable, .registrationClosed: nil
        }
    }

    /// What is wrong with a typed address.
    init(_ fault: TypedAddresses.Fault) {
        switch fault {
        case .addressInvalid: self = .addressInvalid
        case .addressRefused: self = .addressRefused
        case .phoneInvalid: self = .phoneInvalid
        case .phoneUnsupported: self = .phoneUnsupported
        }
    }
}
