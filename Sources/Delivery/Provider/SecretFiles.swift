import Foundation
import Glibc
import Persistence

/// The credentials of providers and webhooks: files that only their owner may read. A realm's are in the folder that
/// has the realm's slug as its name; what is in `POSTERN_SECRETS_DIR` itself is for every realm.
///
/// A file is read for each message, so a new content is used at once and none stays in memory.
public actor SecretFiles {
    /// Why a file is of no use. The text names the file, never its content.
    public enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
        /// `POSTERN_SECRETS_DIR` is not set.
        case noFolder
        /// There is no such file, or it cannot be read.
        case unreadable(String)
        /// Others than its owner may read or write it.
        case mode(String)
        /// It is empty, too long, or not one line of text.
        case content(String)

        /// What is wrong, and what to do.
        public var description: String {
            switch self {
            case .noFolder: "POSTERN_SECRETS_DIR is not set: it must name the folder with the credentials of providers"
            case .unreadable(let name): "\(name) is not a file in POSTERN_SECRETS_DIR that this process can read"
            case .mode(let name):
                "\(name) in POSTERN_SECRETS_DIR must have mode 0400 or 0600, or 0440 of root and its group"
            case .content(let name): "\(name) in POSTERN_SECRETS_DIR must hold one line of text, 4,096 bytes at most"
            }
        }
    }

    private let folder: String?
    private nonisolated let executor = BlockingExecutor(label: "postern.secrets")

    /// The executor, which may block.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private static let longest = 4096

    /// - Parameter folder: `POSTERN_SECRETS_DIR`.
    public init(folder: String?) {
        self.folder = folder
    }

    /// Why a folder cannot be the one of the credentials, in words that end a sentence about it; `nil`: it can.
    /// - Parameter keyFile: `POSTERN_SECRET_KEY_FILE`, which no name of a credential may reach.
    public static func fault(of folder: String, keyFile: String?) -> String? {
        var facts = stat()
        guard stat(folder, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else { return "is not a folder" }
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
            return "cannot be read by this process"
        }
        var key = stat()
        guard let keyFile, stat(keyFile, &key) == 0 else { return nil }
        // A link to the key file is the key file.
        let paths = entries.flatMap { entry in
            let path = "\(folder)/\(entry)"
            let below = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            return [path] + below.map { "\(path)/\($0)" }
        }
        let holdsKey = paths.contains { path in
            stat(path, &facts) == 0 && facts.st_ino == key.st_ino && facts.st_dev == key.st_dev
        }
        return holdsKey ? "holds the key file: keep POSTERN_SECRET_KEY_FILE outside of it" : nil
    }

    /// The line in a file.
    /// - Parameters:
    ///   - name: without a folder.
    ///   - realm: the slug of the realm that names it.
    public func secret(_ name: String, of realm: String) throws(Fault) -> String {
        guard let folder else { throw .noFolder }
        for part in [name, realm] where part.isEmpty || part.contains("/") || part == "." || part == ".." {
            throw .unreadable(name)
        }
        var descriptor = open("\(folder)/\(realm)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        // A file of the realm that cannot be used is a fault, and not a reason to use another.
        if descriptor < 0, errno == ENOENT || errno == ENOTDIR {
            descriptor = open("\(folder)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        }
        guard descriptor >= 0 else { throw .unreadable(name) }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { throw .unreadable(name) }
        guard SecretFile.isPrivate(facts) else { throw .mode(name) }
        var bytes = [UInt8](repeating: 0, count: Self.longest + 2)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { free in
                free.baseAddress.map { read(descriptor, $0 + count, free.count - count) } ?? -1
            }
            guard got >= 0 else { throw .unreadable(name) }
            if got == 0 { break }
            count += got
        }
        var line = bytes[..<count]
        if line.last == 0x0A { line.removeLast() }
        if line.last == 0x0D { line.removeLast() }
        guard (1...Self.longest).contains(line.count), line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            let text = String(validating: line, as: UTF8.self)
        else { throw .content(name) }
        return text
    }
}
