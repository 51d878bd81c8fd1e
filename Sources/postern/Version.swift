import CCurl
import CLibPQ
import COpenSSL
import Foundation

/// What `postern --version` prints.
enum Version {
    /// Of this release, as the first heading of CHANGELOG.md has it.
    static let number = "1.0.0-rc.1"

    /// Version, commit, Swift, and what is linked: shared libraries as they are at run time, Swift packages as they
    /// were built.
    static var text: String {
        var lines = [
            "postern \(number)",
            "commit \(BuildFacts.commit)",
            BuildFacts.swiftVersion,
            "libpq \(libpq)",
            "libcurl \(words(curl_version()).first ?? "unknown")",
            String(cString: OpenSSL_version(OPENSSL_VERSION)),
        ]
        lines += packages.map { "\($0.name) \($0.version)" }
        return lines.joined(separator: "\n")
    }

    private static var libpq: String {
        let number = PQlibVersion()
        return "\(number / 10_000).\(number % 10_000)"
    }

    /// "libcurl/7.88.1 OpenSSL/3.0.15 …" without the names.
    private static func words(_ text: UnsafeMutablePointer<CChar>?) -> [Substring] {
        text.map { String(cString: $0).split(separator: " ") }?.map { $0.split(separator: "/").last ?? $0 } ?? []
    }

    private struct Resolved: Decodable {
        struct Pin: Decodable {
            struct State: Decodable {
                let version: String?
                let revision: String?
            }
            let identity: String
            let state: State
        }
        let pins: [Pin]
    }

    private static var packages: [(name: String, version: String)] {
        let resolved = try? JSONDecoder().decode(Resolved.self, from: Data(BuildFacts.resolvedPackages.utf8))
        return (resolved?.pins ?? []).map { ($0.identity, $0.state.version ?? $0.state.revision ?? "unknown") }
            .sorted { $0.0 < $1.0 }
    }
}
