import Foundation
import PosternClient

/// A ``FileStore`` that remembers which access tokens it has had, and whose writes may fail or end the process.
struct WatchedStore: ComparingStore, SettingAsideStore, NamedStore {
    let store: FileStore

    func read() async throws -> Data? {
        let data = try await store.read()
        StoreWatch.shared.saw(data)
        return data
    }

    func write(_ data: Data?) async throws {
        try StoreWatch.shared.willWrite()
        try await store.write(data)
        StoreWatch.shared.saw(data)
    }

    func write(_ data: Data?, replacing expected: Data?) async throws -> Bool {
        try StoreWatch.shared.willWrite()
        guard try await store.write(data, replacing: expected) else { return false }
        StoreWatch.shared.saw(data)
        return true
    }

    func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        try await store.exclusively(body)
    }

    func setAside(_ damaged: Data?) async throws { try await store.setAside(damaged) }
    func forgetAside() async throws { try await store.forgetAside() }

    func named(_ name: String) -> any SessionStore {
        (store.named(name) as? FileStore).map(WatchedStore.init) ?? self
    }
}

/// What happened to the store of this process, and what is to happen to it.
final class StoreWatch: @unchecked Sendable {
    static let shared = StoreWatch()
    private let lock = NSLock()
    private var tokens: Set<String> = []
    private var writes = 0
    private var failing: Int?
    private var untilDeath: Int?

    /// Lets every so-manieth write fail, as on a full disk.
    func fail(every count: Int?) { lock.withLock { failing = count } }

    /// Ends the process before the write that comes after so many others.
    func die(after count: Int) { lock.withLock { untilDeath = count } }

    /// Whether a document that was read or written had this access token.
    func has(_ token: String) -> Bool { lock.withLock { tokens.contains(token) } }

    func willWrite() throws {
        try lock.withLock {
            writes += 1
            if let left = untilDeath {
                if left == 0 { kill(getpid(), SIGKILL) }
                untilDeath = left - 1
            }
            if let failing, writes % failing == 0 { throw POSIXError(.ENOSPC) }
        }
    }

    func saw(_ data: Data?) {
        let kept = data.flatMap(JSONValue.init)?["tokens"]?.array ?? []
        lock.withLock { tokens.formUnion(kept.compactMap { $0["value"]?.string }) }
    }
}
