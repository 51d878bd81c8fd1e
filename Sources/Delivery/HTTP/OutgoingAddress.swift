import CCurl
import Glibc

/// Which addresses the server connects to for the URLs that administrators give.
///
/// The address is looked at when the socket is opened: a name may resolve to another address a moment later, and the
/// one that was looked at is the one that is used.
enum OutgoingAddress {
    /// Whether a call may connect there: never to an address of the link (RFC 3927, RFC 4291 §2.5.6) or of a cloud's
    /// metadata service, which gives credentials to all that reach it; in plain text to this machine only.
    /// - Parameter address: a `sockaddr` of `length` bytes.
    static func mayConnect(_ address: UnsafeRawPointer, length: Int, scheme: String) -> Bool {
        guard let bytes = bytes(of: address, length: length) else { return false }
        guard scheme == "https" || isLoopback(bytes) else { return false }
        return !isForbidden(bytes)
    }

    /// Of clouds that do not use a link-local address: AWS and Google (IPv6), Alibaba, Oracle (formerly), Azure.
    private static let metadataIPv6: [[UInt8]] = [
        [0xFD, 0x00, 0x0E, 0xC2] + [UInt8](repeating: 0, count: 10) + [0x02, 0x54],
        [0xFD, 0x00, 0x0E, 0xC2] + [UInt8](repeating: 0, count: 11) + [0x23],
        [0xFD, 0x20, 0x00, 0xCE] + [UInt8](repeating: 0, count: 10) + [0x02, 0x54],
    ]
    private static let metadataIPv4: [[UInt8]] = [[100, 100, 100, 200], [192, 0, 0, 192], [168, 63, 129, 16]]

    private static func isForbidden(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 { return bytes.starts(with: [169, 254]) || metadataIPv4.contains(bytes) }
        if bytes.starts(with: [0xFE]), bytes[1] & 0xC0 == 0x80 { return true }
        return metadataIPv6.contains(bytes) || embedded(in: bytes).contains(where: isForbidden)
    }

    private static func isLoopback(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 { return bytes.first == 127 }
        return bytes == [UInt8](repeating: 0, count: 15) + [1]
            || bytes.starts(with: mapped) && bytes.dropFirst(12).first == 127
    }

    private static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]

    /// The IPv4 addresses in an IPv6 address: mapped, compatible or translated (RFC 4291 §2.5.5, RFC 6052, RFC 8215),
    /// of 6to4 (RFC 3056) and of Teredo (RFC 4380).
    private static func embedded(in bytes: [UInt8]) -> [[UInt8]] {
        let last = Array(bytes.suffix(4))
        if bytes.starts(with: mapped) || bytes.starts(with: [UInt8](repeating: 0, count: 12))
            || bytes.starts(with: [0x00, 0x64, 0xFF, 0x9B])
            || bytes.starts(with: [UInt8](repeating: 0, count: 8) + [0xFF, 0xFF, 0, 0])
        {
            return [last]
        }
        if bytes.starts(with: [0x20, 0x02]) { return [Array(bytes[2..<6])] }
        if bytes.starts(with: [0x20, 0x01, 0, 0]) { return [Array(bytes[4..<8]), last.map { ~$0 }] }
        return []
    }

    /// 4 or 16 bytes; `nil` for a family that no URL has.
    private static func bytes(of address: UnsafeRawPointer, length: Int) -> [UInt8]? {
        guard length >= MemoryLayout<sockaddr>.size else { return nil }
        switch Int32(address.loadUnaligned(as: sockaddr.self).sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            let found = address.loadUnaligned(as: sockaddr_in.self)
            return withUnsafeBytes(of: found.sin_addr) { Array($0) }
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            let found = address.loadUnaligned(as: sockaddr_in6.self)
            return withUnsafeBytes(of: found.sin6_addr) { Array($0) }
        default: return nil
        }
    }
}

/// Opens the sockets of one call, and knows whether it refused an address. Confined to the thread of its loop.
final class OutgoingSocket {
    private let scheme: String
    /// Whether an address was refused.
    private(set) var hasRefused = false

    init(scheme: String) {
        self.scheme = scheme
    }

    private func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        // The bytes go on behind the member, which has the size of the smallest address.
        let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr)
        let facts = address.pointee
        guard let offset,
            OutgoingAddress.mayConnect(
                UnsafeRawPointer(address) + offset, length: Int(facts.addrlen), scheme: scheme)
        else {
            hasRefused = true
            return CURL_SOCKET_BAD
        }
        // Child processes do not inherit the connections.
        return socket(facts.family, facts.socktype | Int32(SOCK_CLOEXEC.rawValue), facts.protocol)
    }

    /// `CURLOPT_OPENSOCKETFUNCTION`; the user data is an `OutgoingSocket`.
    static let openCallback: curl_opensocket_callback = { userData, _, address in
        guard let userData, let address else { return CURL_SOCKET_BAD }
        return Unmanaged<OutgoingSocket>.fromOpaque(userData).takeUnretainedValue().open(address)
    }
}
