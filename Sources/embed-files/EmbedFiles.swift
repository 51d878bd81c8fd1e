import Foundation

/// Writes folders of text files into one Swift file of constants, so that the executable carries them.
///
/// Usage: `embed-files OUTPUT NAME=FOLDER …`. The output declares `enum Embedded` with one `static let NAME` per
/// folder: all files in it and below it, byte for byte, each named by its path in the folder, sorted by that. A folder
/// that does not exist gives an empty list.
@main
struct EmbedFiles {
    static func main() throws {
        var arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "--build-facts" {
            guard arguments.count == 3 else { throw UsageError() }
            return try BuildFacts.write(
                to: arguments[arguments.startIndex + 1],
                package: URL(fileURLWithPath: arguments[arguments.startIndex + 2]))
        }
        guard let output = arguments.popFirst() else { throw UsageError() }
        var source = "/// Text files of this package, embedded at build time.\nenum Embedded {\n"
        for argument in arguments {
            let parts = argument.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { throw UsageError() }
            source += "    static let \(parts[0]): [(name: String, text: String)] = [\n"
            for file in paths(in: String(parts[1])) {
                let text = try String(contentsOfFile: "\(parts[1])/\(file)", encoding: .utf8)
                source += "        (name: \(literal(file)), text: \(literal(text))),\n"
            }
            source += "    ]\n"
        }
        source += "}\n"
        try source.write(toFile: output, atomically: true, encoding: .utf8)
    }

    private static func paths(in folder: String) -> [String] {
        (FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? [])
            .filter { path in
                var isFolder: ObjCBool = false
                return !path.split(separator: "/").contains { $0.hasPrefix(".") }
                    && FileManager.default.fileExists(atPath: "\(folder)/\(path)", isDirectory: &isFolder)
                    && !isFolder.boolValue
            }
            .sorted()
    }

    /// A Swift string literal of exactly `text`.
    static func literal(_ text: String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\", "\"": literal += "\\\(scalar)"
            case "\n": literal += "\\n"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                literal += "\\u{\(String(scalar.value, radix: 16))}"
            default: literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "\""
    }

    struct UsageError: Error, CustomStringConvertible {
        var description: String { "usage: embed-files OUTPUT NAME=FOLDER … | --build-facts OUTPUT PACKAGE" }
    }
}
