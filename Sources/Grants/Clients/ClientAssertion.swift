import Crypto
import Persistence

/// A JWT by which a client authenticates (RFC 7523 §2.2, §3; OpenID Connect Core §9 `private_key_jwt`), not yet
/// verified.
struct ClientAssertion {
    /// `iss`, which must be `sub`.
    let clientID: String
    private let jws: RegisteredJWS
    private let claims: Claims

    /// `client_assertion_type`.
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// An assertion may not live longer than this, in seconds.
    static let maximumLifetime = 600.0
    /// How far the client's clock may be off, in seconds.
    static let leeway = 30.0
    /// Beyond its end an assertion is remembered as used for this long, in seconds: leeway, and a database clock that
    /// is ahead.
    static let memory = 120.0

    private struct Claims {
        let aud: [String]
        let jti: String?
        let exp: Double?
        let nbf: Double?
        let iat: Double?

        /// `nil` where a claim is of another type.
        init?(_ claims: JOSEObject) {
            guard let aud = claims.has("aud") ? claims.texts("aud") : [], claims.isAbsentOrText("jti"),
                ["exp", "nbf", "iat"].allSatisfy(claims.isAbsentOrDate)
            else { return nil }
            self.aud = aud
            jti = claims.text("jti")
            exp = claims.date("exp")
            nbf = claims.date("nbf")
            iat = claims.date("iat")
        }
    }

    /// `nil` unless it is a JWS with JSON claims and names one client as `iss` and `sub`.
    init?(_ text: String) {
        guard let jws = RegisteredJWS(text), let object = JOSEObject(jws.payload), let iss = object.text("iss"),
            iss == object.text("sub"), let claims = Claims(object)
        else { return nil }
        clientID = iss
        self.jws = jws
        self.claims = claims
    }

    /// What an assertion that holds is used up as.
    struct Use: Equatable {
        /// SHA-256 over client and `jti`, 32 bytes.
        let id: [UInt8]
        /// Until when it must be remembered, seconds since the epoch.
        let expiresAt: Double
    }

    /// Checks everything but single use.
    /// - Parameters:
    ///   - audiences: what the server is called; every `aud` must be one of these.
    ///   - now: seconds since the epoch.
    /// - Returns: what to use up; else the reason for the log.
    func verify(for client: Client, audiences: [String], now: Double) -> Result<Use, Refusal> {
        guard jws.typ.map({ Self.types.contains($0.lowercased()) }) ?? true else { return .failure(.init("typ")) }
        guard !claims.aud.isEmpty, claims.aud.allSatisfy(audiences.contains) else { return .failure(.init("aud")) }
        guard let exp = claims.exp, exp > now - Self.leeway else { return .failure(.init("expired")) }
        guard exp <= now + Self.maximumLifetime + Self.leeway else { return .failure(.init("exp too far ahead")) }
        guard claims.nbf.map({ $0 <= now + Self.leeway }) ?? true, claims.iat.map({ $0 <= now + Self.leeway }) ?? true
        else {
            return .failure(.init("not yet valid"))
        }
        guard let jti = claims.jti, (1...256).contains(jti.utf8.count) else { return .failure(.init("jti")) }
        guard jws.isSigned(by: client.keys) else { return .failure(.init("signature")) }
        let id = SHA256.hash(data: client.key.bytes + Array(jti.utf8))
        return .success(Use(id: Array(id), expiresAt: exp + Self.memory))
    }

    struct Refusal: Error, Equatable {
        let reason: String

        init(_ reason: String) {
            self.reason = "assertion: " + reason
        }
    }

    private static let types: Set<String> = ["jwt", "client-authentication+jwt"]
}
