/// What a request of Cotter's wire is refused with; clients see no OAuth errors there.
public enum CotterRefusal: Error, Sendable {
    /// The key is unknown, a confidential client's, or without the permission.
    case apiKey
    /// The body is not as it should be.
    case request
    /// Anything about the code. The reason is for logs.
    case code(String)
    /// Anything about the refresh token. The reason is for logs.
    case refreshToken(String)
}
