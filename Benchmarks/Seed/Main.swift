import Foundation
import Grants
import Persistence

/// Makes what the load generator presents, with the product's own code and the run's key file, and the rows that let it
/// be accepted.
///
/// `BenchSeed KEYFILE REALM DIRECTORY WHAT COUNT …` writes `DIRECTORY/WHAT.values` (one request value per line) and,
/// unless the rows exist already, `DIRECTORY/WHAT.rows` (tab-separated, binary in hexadecimal), which sql/bench/*.sql
/// turn into table rows.
@main
struct Main {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 5, let realm = UUIDValue(arguments[1]), let count = Int(arguments[4]) else {
            throw Usage()
        }
        let seed = Seed(keyring: try Keyring(contentsOf: arguments[0]), realm: realm, count: count)
        let rest = Array(arguments[5...])
        let (values, rows): ([String], [String]) =
            switch (arguments[3], rest.count) {
            case ("refresh", 0): seed.refreshTokens()
            case ("access", 3): try seed.accessTokens(rest)
            case ("codes", 1): try seed.codes(rest)
            case ("passkeys", 3): try seed.assertions(rest)
            default: throw Usage()
            }
        let path = "\(arguments[2])/\(arguments[3])"
        try Data((values.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: path + ".values"))
        if !rows.isEmpty {
            try Data((rows.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: path + ".rows"))
        }
    }
}

struct Usage: Error, CustomStringConvertible {
    let description = """
        BenchSeed KEYFILE REALM DIRECTORY refresh COUNT
        BenchSeed KEYFILE REALM DIRECTORY access COUNT SESSIONS AUTHTIME CLIENT_ID
        BenchSeed KEYFILE REALM DIRECTORY codes COUNT FIRSTUSER
        BenchSeed KEYFILE REALM DIRECTORY passkeys COUNT CLIENT RPID USERS
        """
}
