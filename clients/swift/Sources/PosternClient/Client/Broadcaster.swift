import Foundation

/// Tells every reader every change of the state. A reader that does not read keeps the newest ones only.
struct Broadcaster {
    private static let mostUnread = 64
    private(set) var last: SessionState?
    private(set) var readers: [UUID: AsyncStream<SessionState>.Continuation] = [:]

    static func stream() -> (AsyncStream<SessionState>, AsyncStream<SessionState>.Continuation) {
        AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(mostUnread))
    }

    /// - Returns: whether it is a change.
    mutating func publish(_ state: SessionState) -> Bool {
        if let last, last.isSame(as: state) { return false }
        last = state
        for reader in readers.values { reader.yield(state) }
        return true
    }

    mutating func add(_ reader: AsyncStream<SessionState>.Continuation, _ id: UUID) {
        readers[id] = reader
        if let last { reader.yield(last) }
    }

    mutating func remove(_ id: UUID) { readers[id] = nil }

    mutating func finish() {
        for reader in readers.values { reader.finish() }
        readers = [:]
    }
}

extension SessionState {
    /// Whether it says the same: each ID token has new times, which are no change of who is signed in.
    fileprivate func isSame(as other: SessionState) -> Bool {
        guard case .signedIn(let user) = self, case .signedIn(let former) = other else { return self == other }
        let passing: Set = ["iat", "exp", "at_hash", "nonce", "jti"]
        return user.claims.filter { !passing.contains($0.key) } == former.claims.filter { !passing.contains($0.key) }
    }
}
