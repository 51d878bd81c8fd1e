import Foundation

/// Vectors of third parties, read in place and never copied here.
enum VectorFile {
    /// The file's content; `nil`, with a printed line, where the vectors are not there.
    static func load<T: Decodable>(_ name: String, as type: T.Type) throws -> T? {
        let directory =
            ProcessInfo.processInfo.environment["POSTERN_VECTORS"].map { URL(fileURLWithPath: $0) }
            ?? URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
            .appendingPathComponent("../shared/vectors").standardizedFileURL
        let file = directory.appendingPathComponent(name)
        guard FileManager.default.fileExists(atPath: file.path) else {
            print("vectors \(name): skipped, no POSTERN_VECTORS and no ../shared/vectors")
            return nil
        }
        return try JSONDecoder().decode(type, from: Data(contentsOf: file))
    }
}
