import Grants
import Persistence

/// A button of a form, as `action` names it.
enum SignInAction: String, Sendable {
    case `continue`, passkey, register, cancel, resend, link, code, create, skip, allow, deny, restart
    case otherAddress = "other-address"
    case otherAccount = "other-account"
    /// A code by a channel of phones; `action` names the channel.
    case channel

    init?(named name: String) {
        if Channel(rawValue: name)?.reaches == .phone { self = .channel } else { self.init(rawValue: name) }
    }
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
