import Foundation

/// Keeps the document in a file that its owner alone may read.
///
/// Processes may share it: `exclusively` is a lock that they all see. A process that was stopped while it holds the lock
/// keeps the others waiting for five seconds only; the server makes it safe to go on without.
public struct FileStore: SessionStore {
    /// Files and locks block a thread; the threads of tasks are not to be blocked.
    private static let queue = DispatchQueue(label: "postern.file-store")

    private let directory: URL
    private let name: String?

    /// - Parameters:
    ///   - directory: by default `$XDG_STATE_HOME/postern`, else `~/.local/state/postern`. It is made with mode 0700.
    ///   - name: of the file; by default one of its own for each origin and client.
    public init(directory: URL? = nil, name: String? = nil) {
        self.directory = directory ?? Self.defaultDirectory
        self.name = name
    }

    private static var defaultDirectory: URL {
        let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = FileManager.default.homeDirectoryForCurrentUser
        let base = state.map { URL(fileURLWithPath: $0) } ?? home.appendingPathComponent(".local/state")
        return base.appendingPathComponent("postern")
    }

    /// The document.
    /// - Throws: ``PosternError/misuse(_:)`` for a file or folder that others may read, or that is a symbolic link.
    public func read() async throws -> Data? {
        try await blocking { try $0.read() }
    }

    /// Replaces the document: written beside, made durable, renamed.
    public func write(_ data: Data?) async throws {
        try await blocking { _ = try $0.write(data) { true } }
    }

    /// Holds the lock of the file. In this process one body runs after another; another process is waited for five seconds.
    public func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        let file = try file()
        return try await Turnstiles.shared.turnstile(file.path).pass {
            let lock = try await blocking { try $0.openLock() }
            // Nothing tells when another process gives up its lock, but to block a thread.
            defer { lock.close() }
            var waits = 0
            while !lock.take(), waits < 250 {
                waits += 1
                try? await Task.sleep(for: .milliseconds(20))
            }
            return try await body()
        }
    }

    private func file() throws -> PrivateFile {
        let name = name ?? "postern"
        guard !name.isEmpty, !name.contains("/"), !name.hasPrefix("."), name.utf8.count <= 128 else {
            throw PosternError.misuse("\(name) is no name of a store")
        }
        return PrivateFile(directory: directory.path, name: name)
    }

    private func blocking<T: Sendable>(_ body: @escaping @Sendable (PrivateFile) throws -> T) async throws -> T {
        let file = try file()
        return try await withCheckedThrowingContinuation { continuation in
            Self.queue.async { continuation.resume(with: Result { try body(file) }) }
        }
    }
}

extension FileStore: ComparingStore {
    package func write(_ data: Data?, replacing expected: Data?) async throws -> Bool {
        try await blocking { file in try file.write(data) { try file.read() == expected } }
    }
}

extension FileStore: SettingAsideStore {
    package func setAside(_ damaged: Data?) async throws { try await blocking { try $0.setAside(damaged) } }
    package func forgetAside() async throws { try await blocking { try $0.forgetAside() } }
}

extension FileStore: NamedStore {
    package func named(_ name: String) -> any SessionStore {
        self.name == nil ? FileStore(directory: directory, name: name) : self
    }
}

extension FileStore: Discreet {
    /// Where the file is.
    public var shown: [(String, any Sendable)] { [("directory", directory.path), ("name", name)] }
}
