import Foundation
import Testing

/// Third-party vectors, read in place from `POSTERN_VECTORS` or `../shared/vectors` beside the package; never copied
/// here.
enum VectorFile {
    static let directory: URL? = {
        let environment = ProcessInfo.processInfo.environment["POSTERN_VECTORS"].map { URL(fileURLWithPath: $0) }
        let beside = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
            .appendingPathComponent("../shared/vectors").standardizedFileURL
        return [environment, beside].compactMap { $0 }
            .first { FileManager.default.fileExists(atPath: $0.appendingPathComponent("w3c.json").path) }
    }()

    /// The decoded file, or nil with a printed line when the vectors are not there.
    static func load<T: Decodable>(_ name: String, as type: T.Type) throws -> T? {
        guard let directory else {
            print("vectors \(name): skipped, no POSTERN_VECTORS and no ../shared/vectors")
            return nil
        }
        return try JSONDecoder().decode(type, from: Data(contentsOf: directory.appendingPathComponent(name)))
    }
}

/// Counts verdicts of one vector file and prints them on one line.
struct VectorCount {
    var file: String
    private(set) var agreed: [String: Int] = [:]
    private(set) var disagreed: [String] = []

    init(_ file: String) {
        self.file = file
    }

    mutating func record(_ name: String, _ group: String, expected: Bool, got: Bool, detail: String = "") {
        if expected == got {
            agreed["\(group) \(expected ? "valid" : "invalid")", default: 0] += 1
        } else {
            disagreed.append("\(group) \(name): expected \(expected), got \(got) \(detail)")
        }
    }

    func report() {
        let parts = agreed.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        let total = agreed.values.reduce(0, +)
        print("vectors \(file): \(total) as expected (\(parts.joined(separator: ", "))), \(disagreed.count) not")
        for line in disagreed { print("  \(line)") }
    }
}

/// Hexadecimal to bytes, for vectors and literals in tests.
func hex(_ text: some StringProtocol) -> [UInt8] {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text {
        guard let digit = character.hexDigitValue.map(UInt8.init) else { continue }
        if let first = high {
            bytes.append(first << 4 | digit)
            high = nil
        } else {
            high = digit
        }
    }
    return bytes
}
