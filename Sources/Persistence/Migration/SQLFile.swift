import Crypto

/// A file of SQL from `sql/`.
public struct SQLFile: Sendable, Equatable {
    /// `0001_schema.sql`; of functions with their folder, `session/refresh.sql`.
    public let name: String
    /// The SQL.
    public let text: String

    /// A file.
    public init(name: String, text: String) {
        self.name = name
        self.text = text
    }

    /// The schema of release 1.0.0, which is migration 1: the files of `sql/schema` in the order of their names.
    static let schema = SQLFile(
        name: "0001_schema.sql",
        text: Embedded.schema.map { "-- sql/schema/\($0.name)\n\($0.text)" }.joined(separator: "\n"))
    /// The migrations that are part of this binary.
    public static let migrations = [schema] + Embedded.migrations.map { SQLFile(name: $0.name, text: $0.text) }
    /// The files of functions that are part of this binary.
    public static let functions = Embedded.functions.map { SQLFile(name: $0.name, text: $0.text) }

    /// The number before the first underscore.
    var version: Int32? { name.prefix { $0 != "_" }.isEmpty ? nil : Int32(name.prefix { $0 != "_" }) }

    /// SHA-256 of the text, hexadecimal.
    var checksum: String {
        SHA256.hash(data: Array(text.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// Names are put into SQL literals: letters, digits, underscore, hyphen and full stop only.
    var hasPlainName: Bool { Self.isPlain(name) }

    /// Whether the name is a relative path of plain names: no part is empty or hidden.
    var hasPlainPath: Bool {
        name.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
            Self.isPlain(part) && !part.hasPrefix(".")
        }
    }

    private static func isPlain(_ name: some StringProtocol) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy { unit in
                switch unit {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    /// The line of a position that PostgreSQL reports, counted in characters from 1.
    func line(ofPosition position: Int) -> Int {
        1 + text.unicodeScalars.prefix(max(0, position - 1)).count { $0 == "\n" }
    }
}
