import Grants
import Persistence
import TokenEndpoint

/// A phone number whose code was right, of an account that has not used the number for long: it may have passed to
/// another person. The proof waits in the database, under the handle of the code, until the person proves an e-mail
/// address or a passkey of that account as well, or takes the number to a new account.
struct HeldNumber: Sendable, Equatable {
    /// The handle's id, 16 bytes.
    let handle: [UInt8]
    /// E.164.
    let number: String
    /// What carried the code.
    let channel: Channel?

    init?(_ handle: AuthSessionHandle?) {
        guard let handle, handle.addressKey.isPhone else { return nil }
        self.handle = handle.id
        number = handle.addressKey
        channel = handle.channel
    }

    /// `handle (16) ‖ number`, and `|` and the channel if it is known.
    var encoded: [UInt8] { handle + Array((channel.map { "\(number)|\($0.rawValue)" } ?? number).utf8) }

    /// Reads ``encoded``; `nil` for anything else.
    init?(_ encoded: some Collection<UInt8>) {
        guard encoded.count > 16, let text = String(validating: encoded.dropFirst(16), as: UTF8.self) else {
            return nil
        }
        let parts = text.split(separator: "|", maxSplits: 1)
        guard let number = parts.first else { return nil }
        handle = Array(encoded.prefix(16))
        self.number = String(number)
        channel = parts.count == 2 ? Channel(rawValue: String(parts[1])) : nil
    }
}

extension SignInTransaction {
    /// The page that asks for one more proof of the account: its number alone does not sign in.
    mutating func proveAgain(_ held: HeldNumber) {
        step = .address
        self.held = held
        (address, handle, code, sends, wrongCodes) = ("", "", "", 0, 0)
    }
}

extension SignInContext {
    /// The same under the rules of a second proof: an e-mail address, a passkey, or a new account for the number.
    func provingAgain(_ transaction: SignInTransaction) -> SignInContext {
        guard transaction.held != nil else { return self }
        var context = self
        context.rules.methods = realm.hosted.methods.intersection([.passkey]).union([.emailCode])
        context.rules.addresses = TypedAddresses(realm, takesMail: true, takesPhones: false)
        context.rules.prefersLink = false
        context.rules.replacesAccount = rules.wantsAddress || rules.registration != .off
        return context
    }
}
