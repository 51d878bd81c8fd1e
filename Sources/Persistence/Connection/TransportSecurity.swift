import CLibPQ
import Glibc

/// Whether a connection string protects the way to the database.
///
/// libpq's default, `sslmode=prefer`, accepts any certificate and continues in the clear when TLS is refused. On the
/// way to a remote host an attacker could then read every salt and hash, and forge the answer that a sign-in was right.
public enum TransportSecurity {
    /// What an operator must change before `conninfo` may be used; `nil` when nothing.
    ///
    /// A remote host needs `sslmode=verify-full`, or an `sslmode` written in the connection string, which then is the
    /// operator's word. A host is local when it is a socket directory or a loopback name or address; the host and the
    /// `hostaddr` of each place must be.
    public static func problem(with conninfo: String) -> String? {
        guard let given = options(PQconninfoParse(conninfo, nil)) else { return nil }  // connecting says what is wrong
        if given["sslmode"] != nil { return nil }
        guard given["service"] == nil else {
            return
                "it names a service: write sslmode=verify-full into the connection string itself, "
                + "with sslrootcert=FILE for your CA"
        }
        // Environment variables, and the service of PGSERVICE.
        let defaults = options(PQconndefaults()) ?? [:]
        let effective = given.merging(defaults) { first, _ in first }
        if effective["sslmode"] == "verify-full" { return nil }
        let remote = Set(list(effective["host"]) + list(effective["hostaddr"])).filter { !isLocal($0) }.sorted()
        guard !remote.isEmpty else { return nil }
        return """
            \(remote.joined(separator: ", ")) is not this machine: \
            add sslmode=verify-full (and sslrootcert=FILE for your CA), \
            or another sslmode to go without
            """
    }

    /// The options that have a value.
    private static func options(_ list: UnsafeMutablePointer<PQconninfoOption>?) -> [String: String]? {
        guard let list else { return nil }
        defer { PQconninfoFree(list) }
        var found: [String: String] = [:]
        var option = list
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val, value.pointee != 0 {
                found[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return found
    }

    private static func list(_ hosts: String?) -> [String] {
        // An empty entry means the default, a socket.
        (hosts ?? "").split(separator: ",").map(String.init)
    }

    static func isLocal(_ host: String) -> Bool {
        // A directory, or a socket in the abstract namespace.
        if host.hasPrefix("/") || host.hasPrefix("@") { return true }
        let name = host.lowercased()
        if name == "localhost" || name == "localhost." { return true }
        var four = in_addr()
        if inet_pton(AF_INET, name, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
        var six = in6_addr()
        guard inet_pton(AF_INET6, name, &six) == 1 else { return false }
        return withUnsafeBytes(of: six) { bytes in
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
            return (bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] == 1) || (isMapped && bytes[12] == 127)
        }
    }
}
