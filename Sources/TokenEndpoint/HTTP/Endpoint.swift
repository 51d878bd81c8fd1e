/// Answers a request for a known realm. What a handler throws, ``Responder`` turns into an answer.
public typealias Handler = @Sendable (Exchange) async throws -> Answer

/// One method of a ``Route``: who may call it, and what answers.
///
/// The declaration is what authenticates. A handler gets its caller as a value that only the folder `Authority` can
/// make, so that none can forget to ask, and there is no other way to ask. An endpoint without a declaration does not
/// compile. docs/openapi.yaml names the declaration of each operation (`x-caller`), and a test calls each of them with
/// every kind of token that opens others.
public struct Endpoint: Sendable {
    let answer: Handler

    private init(_ answer: @escaping Handler) { self.answer = answer }

    /// Everybody: what it says or begins belongs to no account. No token changes its answer.
    public static func anonymous(_ handler: @escaping Handler) -> Endpoint { Endpoint(handler) }

    /// Browsers: the cookies of the browser and the page's own form say whose it is, and no token does.
    public static func page(_ handler: @escaping Handler) -> Endpoint { Endpoint(handler) }

    /// A client that asks for tokens: the service behind it authenticates client and grant, in the order that the
    /// errors of a token endpoint have.
    static func grant(_ handler: @escaping Handler) -> Endpoint { Endpoint(handler) }

    /// A device whose signed statement is all of the request: the statement says what it decides, and its signature is
    /// checked where its key is known.
    static func deviceStatement(_ handler: @escaping Handler) -> Endpoint { Endpoint(handler) }

    /// Who is authenticated, for the declarations in `Authority`.
    static func caller<Caller>(
        _ authenticate: @escaping @Sendable (Exchange) async throws -> Caller,
        _ handler: @escaping @Sendable (Exchange, Caller) async throws -> Answer
    ) -> Endpoint {
        Endpoint { try await handler($0, authenticate($0)) }
    }

    /// One method of a part of the product that a realm may lack, where the route's other methods may be there.
    func requiring(_ requirement: Requirement) -> Endpoint {
        Endpoint { exchange in
            try requirement.require(in: exchange.realm)
            return try await answer(exchange)
        }
    }
}
