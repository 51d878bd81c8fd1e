import Foundation

/// Keeps one document: key, session, tokens and requests of one client. It holds secrets.
public protocol SessionStore: Sendable {
    /// The document; `nil` when there is none. - Throws: ``StoreLocked`` while it cannot be read.
    func read() async throws -> Data?
    /// Replaces the document; `nil` erases it. It is durable when this returns.
    func write(_ data: Data?) async throws
    /// Runs the body while no other body of this store runs, as far as the store can tell. A process that is stopped must
    /// not stop the others for ever.
    func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T
}

/// The store cannot be read now, such as the Keychain before the first unlock. Nothing is lost.
public struct StoreLocked: Error {
    /// A store throws it from `read` or `write`.
    public init() {}
}

/// A store that can tell whether the document is still the one that was read.
package protocol ComparingStore: SessionStore {
    /// Writes if the document is `expected`. - Returns: whether it was.
    func write(_ data: Data?, replacing expected: Data?) async throws -> Bool
}

/// A store that keeps a damaged document, so that the developer of the app can look at it.
package protocol SettingAsideStore: SessionStore {
    /// Moves the document to another name, over the former one, unless it is another one than `damaged` by now.
    func setAside(_ damaged: Data?) async throws
    /// Removes what was set aside: it may have a key and tokens.
    func forgetAside() async throws
}

/// A store that takes its name from the client unless it was given one.
package protocol NamedStore: SessionStore {
    func named(_ name: String) -> any SessionStore
}
