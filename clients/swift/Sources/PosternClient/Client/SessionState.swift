/// Whether somebody is signed in on this device, as the store has it.
public enum SessionState: Sendable, Hashable {
    case signedIn(User), signedOut(SignOutReason), locked
}

/// Why there is no session.
public enum SignOutReason: String, Sendable {
    /// The user has not signed in yet.
    case never
    /// The user signed out.
    case byUser
    /// The server ended the session, or a session without refresh token has run out.
    case ended
    /// The key of the session is gone, or the store was damaged.
    case keyLost
}

/// What ``PosternClient/signOut(_:)`` ends.
public enum SignOutScope: Sendable {
    /// The session of this store.
    case thisSession
    /// All sessions of the user, on every device. Needs the server.
    case everywhere
    /// The session of this store, the trusted device and its key.
    case forgettingThisDevice
}
