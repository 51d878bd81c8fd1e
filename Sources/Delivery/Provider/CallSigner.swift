public import Persistence

/// Signs calls to operators' endpoints with the realm's key.
public protocol CallSigner: Sendable {
    /// A token of type `postern-hook+jwt` for one call.
    /// - Parameters:
    ///   - url: exactly what is called: the audience.
    ///   - message: the message the call is about: the same on every retry.
    ///   - body: what is posted: the token holds its hash.
    /// - Throws: when the realm or its key is not available.
    func token(realm: UUIDValue, url: String, message: UUIDValue, body: [UInt8]) async throws -> String
}
