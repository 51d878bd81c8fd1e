import Grants
import HTTPTypes
import Persistence

extension MessageAddress {
    /// `Email`, or `Phone` with `Channel`. Whether an account has it is not looked up: the answer is the same for all.
    /// - Parameter channels: what may carry the message to a phone; the first is the default.
    /// - Throws: the answer to give.
    init(_ body: JSONMembers, _ realm: Realm, channels: [Channel]) throws {
        guard let phone = try body.string("Phone") else {
            guard let email = try body.string("Email").flatMap({ EmailAddress($0) }) else {
                throw Refusal(.error(.badRequest, "Email is invalid."))
            }
            guard realm.addressRules.accept(email.key, app: realm.app?.slug) else {
                throw Refusal(.error(.badRequest, "Address is not accepted."))
            }
            self = .email(email)
            return
        }
        guard try body.string("Email") == nil else {
            throw Refusal(.error(.badRequest, "Send Email or Phone, not both."))
        }
        let named = try body.string("Channel").map { Channel(rawValue: $0) } ?? channels[0]
        guard let channel = named, channels.contains(channel) else {
            throw Refusal(.error(.badRequest, "Channel is invalid."))
        }
        guard let number = PhoneNumber(e164: phone) else { throw Refusal(.error(.badRequest, "Phone is invalid.")) }
        do throws(Realm.PhoneRefusal) {
            try realm.requireSending(to: number, by: channel)
        } catch {
            switch error {
            case .channelUnavailable: throw Refusal(.channelUnavailable)
            case .notSupported: throw Refusal(.error(.badRequest, "Phone is not supported."))
            }
        }
        self = .phone(number, channel)
    }
}

extension Answer {
    /// The realm cannot send by this channel now.
    static var channelUnavailable: Answer {
        .problem(
            .serviceUnavailable, title: "Channel.Unavailable", detail: "This realm sends no messages by this channel.")
    }
}
