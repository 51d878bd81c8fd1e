import Foundation

/// A code that was asked for. It holds no secret: the handle of the request is in the store, so the code can also be typed
/// after the app was ended and started again.
public struct CodeRequest: Sendable, Codable, Hashable, Identifiable {
    /// Made by this library; it opens nothing.
    public let id: String
    /// Where the code was sent.
    public let address: Address
    /// When the code expires, by the clock of the device. The server decides.
    public let expiresAt: Date
    /// From when on another message may be asked for, by the clock of the device.
    public let resendAt: Date
    /// How many more messages may be sent; `nil` if the server does not say so.
    public let sendsLeft: Int?
}

extension CodeRequest: Discreet {
    /// Everything but the address.
    public var shown: [(String, any Sendable)] {
        [("id", id), ("expiresAt", expiresAt), ("resendAt", resendAt), ("sendsLeft", sendsLeft)]
    }
}

/// A sign-in that ends elsewhere: a link in a mail, an approval on another device, a code that is typed into a page. It
/// holds no secret: the handle of the request is in the store.
public struct PendingSignIn: Sendable, Codable, Hashable, Identifiable {
    /// Where the sign-in ends.
    public enum Kind: String, Sendable, Codable {
        /// A link in a mail or SMS.
        case link
        /// A trusted device of the person (OpenID Connect CIBA Core).
        case approval
        /// A page on another device (RFC 8628).
        case device
    }

    /// Made by this library; it opens nothing.
    public let id: String
    /// Where the sign-in ends.
    public let kind: Kind
    /// Two digits to show: the person types them where the link was opened, or on the trusted device.
    public let matchNumber: String?
    /// When the request expires, by the clock of the device. The server decides.
    public let expiresAt: Date
    /// Of a link: from when on another message may be asked for, by the clock of the device.
    public let resendAt: Date?
    /// Of a device: what the person types on the page (RFC 8628 §3.2).
    public let userCode: String?
    /// Of a device: the page.
    public let verificationURL: URL?
    /// Of a device: the page with the code in it, for a QR code.
    public let completeVerificationURL: URL?
}

extension PendingSignIn: Discreet {
    /// Identifier, kind and times; no number, no code.
    public var shown: [(String, any Sendable)] {
        [("id", id), ("kind", kind.rawValue), ("expiresAt", expiresAt), ("resendAt", resendAt)]
    }
}

/// A request under way.
public enum Pending: Sendable, Hashable { case code(CodeRequest), signIn(PendingSignIn) }
