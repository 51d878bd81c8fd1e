import Glibc

/// An IP address; an IPv4-mapped IPv6 address is the IPv4 address it maps.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 or 16 bytes, network order.
    package let bytes: [UInt8]

    package init?(_ text: some StringProtocol) {
        let text = String(text)
        guard text.utf8.count <= 45, !text.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            bytes = withUnsafeBytes(of: &v4) { Array($0) }
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            let all = withUnsafeBytes(of: &v6) { Array($0) }
            let mapped = all[..<10].allSatisfy { $0 == 0 } && all[10] == 0xFF && all[11] == 0xFF
            bytes = mapped ? Array(all[12...]) : all
        } else {
            return nil
        }
    }

    /// An address as proxies write it: `203.0.113.7:51001`, `[2001:db8::7]:51001`, `[2001:db8::7]`, `fe80::7%eth0`, in
    /// quotes, with blanks around it.
    package init?(ofProxy value: some StringProtocol) {
        guard value.utf8.count <= 128 else { return nil }
        var text = Substring(value).trimmingSpaces
        if text.utf8.count > 1, text.first == "\"", text.last == "\"" {
            text = text.dropFirst().dropLast().trimmingSpaces
        }
        var rest: Substring = ""
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            rest = text[text.index(after: end)...]
            text = text[text.index(after: text.startIndex)..<end]
        } else if let colon = text.firstIndex(of: ":"), text[..<colon].contains(".") {
            (text, rest) = (text[..<colon], text[colon...])
        }
        let port = rest.utf8.dropFirst()
        guard rest.isEmpty || rest.first == ":" && (1...5).contains(port.count) && port.allSatisfy(Self.isDigit) else {
            return nil
        }
        if let zone = text.firstIndex(of: "%"), text.contains(":") { text = text[..<zone] }
        self.init(text)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// What limits count: the address itself, IPv6 by its /64.
    package var limitKey: String {
        bytes.count == 4 ? description : Self.text(Array(bytes[..<8]) + [UInt8](repeating: 0, count: 8)) + "/64"
    }

    package var description: String { Self.text(bytes) }

    private static func text(_ bytes: [UInt8]) -> String {
        if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
        return stride(from: 0, to: 16, by: 2)
            .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
            .joined(separator: ":")
    }
}

/// A range of addresses in CIDR notation.
public struct CIDR: Sendable, Equatable {
    private let network: [UInt8]
    private let prefixLength: Int

    /// Parses `10.0.0.0/8`, `::1/128` or a bare address; `nil` otherwise.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else { return nil }
        let bits = address.bytes.count * 8
        guard let length = parts.count == 2 ? Int(parts[1]) : bits, (0...bits).contains(length) else { return nil }
        network = address.bytes
        prefixLength = length
    }

    package func contains(_ address: IPAddress) -> Bool {
        guard address.bytes.count == network.count else { return false }
        let whole = prefixLength / 8
        guard address.bytes[..<whole] == network[..<whole] else { return false }
        let rest = prefixLength % 8
        guard rest > 0 else { return true }
        return (address.bytes[whole] ^ network[whole]) >> UInt8(8 - rest) == 0
    }
}
