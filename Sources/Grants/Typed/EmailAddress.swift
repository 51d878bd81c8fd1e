/// An e-mail address that may be mailed to (RFC 5321 §4.1.2, dot-atom local part, DNS domain).
///
/// Deliberately narrow: one mailbox, no quoting, comments or address literals, so that typed text cannot reach a
/// header, a command line or a second recipient. The local part is ASCII. A domain may be written in any script; it is
/// kept as DNS knows it, in A-labels. Two addresses are the same account when ``key`` is equal. Only ASCII case is
/// folded, so a Unicode look-alike of a mailbox never names the same account.
public struct EmailAddress: Sendable, Hashable {
    /// As typed, without what copying brings around it, the domain in A-labels.
    public let text: String
    /// ASCII lower case: the look-up key (`address_key`).
    public let key: String

    /// The longest address accepted, in bytes (RFC 5321 §4.5.3.1.3 less the angle brackets).
    public static let maximumLength = 254
    /// The longest text that is looked at, in bytes: an address in another script is longer than its A-labels.
    private static let maximumTyped = 1024

    /// Parses an address; `nil` when it is not one.
    public init?(_ typed: String) {
        guard typed.utf8.count <= Self.maximumTyped else { return nil }
        let trimmed = typed.trimmingBlanks
        guard let at = trimmed.utf8.firstIndex(of: UInt8(ascii: "@")), Self.isLocalPart(trimmed.utf8[..<at]),
            let domain = DomainName.ascii(trimmed[trimmed.utf8.index(after: at)...]), Self.isDomain(domain.utf8)
        else { return nil }
        text = "\(trimmed[..<at])@\(domain)"
        guard text.utf8.count <= Self.maximumLength else { return nil }
        key = String(decoding: text.utf8.map(Self.lowercased), as: UTF8.self)
    }

    private static func isLocalPart(_ bytes: some Collection<UInt8>) -> Bool {
        guard (1...64).contains(bytes.count), bytes.first != UInt8(ascii: "-") else { return false }
        return bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
            !atom.isEmpty && atom.allSatisfy { isAlphanumeric($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
        }
    }

    private static func isDomain(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        guard bytes.count <= 253 else { return false }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        // An all-numeric last label is an address literal in disguise (RFC 3696 §2).
        guard (2...16).contains(labels.count), labels.last?.contains(where: { $0 >= UInt8(ascii: "A") }) == true else {
            return false
        }
        return labels.allSatisfy { label in
            let edge = UInt8(ascii: "-")
            return (1...63).contains(label.count) && label.first != edge && label.last != edge
                && label.allSatisfy { isAlphanumeric($0) || $0 == edge }
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
