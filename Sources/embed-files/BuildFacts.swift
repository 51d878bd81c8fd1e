import Foundation

/// What `postern --version` shows about the build: `embed-files --build-facts OUTPUT PACKAGE`.
///
/// Works without git as well: an archive made by `git archive` carries its commit in `.commit` (see `.gitattributes`).
enum BuildFacts {
    static func write(to output: String, package: URL) throws {
        let resolved = (try? String(contentsOf: package.appending(path: "Package.resolved"), encoding: .utf8)) ?? ""
        let source = """
            /// Found out when this was built.
            enum BuildFacts {
                static let commit = \(EmbedFiles.literal(commit(of: package) ?? "unknown"))
                static let swiftVersion = \(EmbedFiles.literal(swiftVersion() ?? "Swift, version unknown"))
                /// Package.resolved.
                static let resolvedPackages = \(EmbedFiles.literal(resolved))
            }

            """
        // An unchanged file is left alone, so that nothing is compiled for it.
        if (try? String(contentsOfFile: output, encoding: .utf8)) == source { return }
        try source.write(toFile: output, atomically: true, encoding: .utf8)
    }

    private static func commit(of package: URL) -> String? {
        let git = package.appending(path: ".git")
        if let folder = folder(git) {
            guard let head = text(folder.appending(path: "HEAD")) else { return nil }
            guard head.hasPrefix("ref: ") else { return isCommit(head) ? head : nil }
            let name = String(head.dropFirst(5))
            // A second work tree keeps its branches in the first one's folder.
            let common = text(folder.appending(path: "commondir")).map { folder.appending(path: $0) } ?? folder
            if let commit = text(common.appending(path: name)), isCommit(commit) { return commit }
            let packed = text(common.appending(path: "packed-refs"))?.split(separator: "\n") ?? []
            return packed.first { $0.hasSuffix(" \(name)") }.map { String($0.prefix(40)) }
        }
        return text(package.appending(path: ".commit")).flatMap { isCommit($0) ? $0 : nil }
    }

    private static func folder(_ git: URL) -> URL? {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: git.path(), isDirectory: &isDirectory) else { return nil }
        if isDirectory.boolValue { return git }
        guard let line = text(git), line.hasPrefix("gitdir: ") else { return nil }
        return URL(fileURLWithPath: String(line.dropFirst(8)), relativeTo: git.deletingLastPathComponent())
    }

    private static func text(_ url: URL) -> String? {
        (try? String(contentsOf: url, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func isCommit(_ text: String) -> Bool {
        text.utf8.count >= 40 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func swiftVersion() -> String? {
        let compiler = Process()
        let output = Pipe()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["swiftc", "--version"]
        compiler.standardOutput = output
        compiler.standardError = FileHandle.nullDevice
        guard (try? compiler.run()) != nil, let data = try? output.fileHandleForReading.readToEnd() else { return nil }
        compiler.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n")
            .first { $0.contains("Swift version") }.map(String.init)
    }
}
