import Crypto
import Encoding
public import Persistence

/// The proof of an address that an authorization request wants, whatever account it is of (docs/decisions/0037).
public struct WantedProof: Sendable, Equatable {
    /// The kind of an address, as SQL names it.
    public enum Kind: String, Sendable, CaseIterable {
        case email, phone
    }

    /// What is to be proven.
    public let kind: Kind
    /// Whether the pages offer a link first.
    public let prefersLink: Bool
    /// What carries the first message to a phone, where the realm has it; `nil`: the realm's default.
    public let channel: Channel?
    /// `challenge_id` of the response, 1…2³¹−1. The code is good with it alone.
    public let challengeID: Int64

    /// A request with a number of its own.
    init(_ kind: Kind, prefersLink: Bool, channel: Channel? = nil) {
        self.kind = kind
        self.prefersLink = prefersLink
        self.channel = channel
        challengeID = Int64(Int32.random(in: 1...Int32.max))
    }

    /// The channels that a client can prefer, in the order of their numbers: 1, 2.
    private static let channels = [Channel.sms, .whatsapp]

    /// `kind (1) ‖ prefersLink (1) ‖ challengeID (8) ‖ channel (1)`.
    var encoded: [UInt8] {
        let number = channel.flatMap(Self.channels.firstIndex(of:)).map { UInt8($0 + 1) } ?? 0
        return [kind == .email ? 1 : 2, prefersLink ? 1 : 0] + bigEndianBytes(challengeID) + [number]
    }

    /// Reads ``encoded``; `nil` for anything else.
    init?(_ encoded: some Collection<UInt8>) {
        let bytes = Array(encoded)
        guard bytes.count == 11, (1...2).contains(bytes[0]), bytes[10] <= Self.channels.count,
            let number = bytes[2..<10].bigEndianInteger(as: UInt64.self)
        else { return nil }
        channel = bytes[10] == 0 ? nil : Self.channels[Int(bytes[10]) - 1]
        kind = bytes[0] == 1 ? .email : .phone
        prefersLink = bytes[1] == 1
        challengeID = Int64(truncatingIfNeeded: number)
    }
}

extension AuthorizationCode {
    /// What is stored of a code that goes with a number. So the token endpoint, which knows no number, finds no code of
    /// this kind, and who redeems one of this kind finds none of the others.
    func hash(withChallenge number: Int64) -> [UInt8] {
        Array(SHA256.hash(data: Array("challenge".utf8) + bigEndianBytes(number) + Array(text.utf8)))
    }
}

extension AuthorizationRequest {
    /// The address that the client wants proven; `nil` in OpenID Connect.
    public var wantedProof: WantedProof? { parameters.proof }

    /// What is stored of the code that answers this request.
    public func hash(of code: AuthorizationCode) -> [UInt8] {
        wantedProof.map { code.hash(withChallenge: $0.challengeID) } ?? code.hash
    }
}
