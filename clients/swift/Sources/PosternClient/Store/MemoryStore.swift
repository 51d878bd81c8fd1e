import Foundation

/// Keeps the document as long as the process lives. Copies share it.
public struct MemoryStore: SessionStore {
    private let memory = Memory()
    private let turnstile = Turnstile()

    /// An empty store.
    public init() {}

    /// The document.
    public func read() async throws -> Data? { await memory.data }

    /// Replaces the document.
    public func write(_ data: Data?) async throws { await memory.replace(data) }

    /// One body after another.
    public func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        try await turnstile.pass(body)
    }
}

extension MemoryStore: ComparingStore {
    package func write(_ data: Data?, replacing expected: Data?) async throws -> Bool {
        await memory.replace(data, ifStill: expected)
    }
}

extension MemoryStore: Discreet {
    /// Nothing.
    public var shown: [(String, any Sendable)] { [] }
}

private actor Memory {
    private(set) var data: Data?

    func replace(_ data: Data?) { self.data = data }

    func replace(_ data: Data?, ifStill expected: Data?) -> Bool {
        guard self.data == expected else { return false }
        self.data = data
        return true
    }
}
