import Crypto
import Encoding
import Persistence

/// Verifies proofs of possession (RFC 9449 §4.3) as far as that needs no database. There is no other definition of a
/// right proof.
///
/// The checks run in the order in which ``verify(_:method:url:accessToken:realm:rules:)`` names them: those that cost
/// nothing come before the signature, and those that a nonce can mend come last. Single use and the binding of what is
/// presented beside the proof are the statement's.
public struct DPoPVerifier: Sendable {
    /// The nonces that it accepts and hands out.
    public let nonces: DPoPNonces
    private let clock: @Sendable () -> Double
    private let headers = DPoPHeaders()

    /// How far a client's clock may be off, in seconds.
    static let leeway = 60.0
    /// The longest proof.
    static let maximumBytes = 4096

    /// - Parameter clock: seconds since the epoch.
    public init(nonces: DPoPNonces, clock: @escaping @Sendable () -> Double) {
        self.nonces = nonces
        self.clock = clock
    }

    /// Checks a proof for one request.
    /// - Parameters:
    ///   - fields: the values of all `DPoP` fields, as received.
    ///   - method: of the request.
    ///   - url: of the request.
    ///   - accessToken: the token that is presented with the proof; `nil` where none is, for example at the token
    ///     endpoint.
    ///   - realm: whose nonces and policy count.
    ///   - rules: what it must be beside that.
    public func verify(
        _ fields: [String], method: String, url: RequestedURL, accessToken: String?, realm: Realm,
        rules: DPoPRules = .standard
    ) throws(DPoPRefusal) -> DPoPProof {
        let now = clock()
        let text = try Self.checkField(fields)
        let (jws, payload) = try Self.checkFormat(text)
        let known = headers[jws.headerText]
        let header: SelfSignedHeader
        if let known { header = known } else { header = try Self.checkHeader(jws) }
        try Self.checkType(header)
        try Self.checkAlgorithm(header, rules)
        let claims = try Self.checkClaims(payload, now)
        try Self.checkSignature(jws, header)
        if known == nil { headers[jws.headerText] = header }
        try Self.checkMethod(claims, method)
        try Self.checkURL(claims, url)
        try Self.checkAccessToken(claims, accessToken)
        let madeAt = try checkNonce(claims, realm, now)
        try checkTime(claims, isByNonce: madeAt != nil, realm, rules, now)
        let id = SHA256.hash(data: header.key.thumbprint + Array(claims.jti.utf8))
        return DPoPProof(
            thumbprint: header.key.thumbprint, id: Array(id), time: madeAt ?? claims.iat, isByNonce: madeAt != nil,
            freshNonce: madeAt.flatMap { freshNonce(after: $0, realm, now) }, nonce: claims.nonce,
            publicKey: header.key.coordinates)
    }

    /// What answers a proof that a nonce can mend: `use_dpop_nonce` with a new one.
    /// - Parameters:
    ///   - reason: for the log.
    ///   - earliest: a whole millisecond, in seconds since the epoch; the nonce is of a later one.
    public func nonceDue(_ reason: String, realm: Realm, after earliest: Double = 0) -> DPoPRefusal {
        // The middle of the next millisecond, for its beginning as a Double can lie in the one before.
        .nonceDue(reason: reason, nonce: nonces.make(realm: realm.id, at: max(clock(), earliest + 0.0015)))
    }

    /// The nonce that a client uses next, so that it need not be refused for one.
    private func freshNonce(after time: Double, _ realm: Realm, _ now: Double) -> String? {
        guard realm.dpop.requiresNonce, now - time > Double(realm.dpop.nonceLifetime) / 2 else { return nil }
        return nonces.make(realm: realm.id, at: now)
    }

    // MARK: The checks, one function each

    private static func require(_ condition: Bool, _ reason: String) throws(DPoPRefusal) {
        guard condition else { throw .invalid(reason: reason) }
    }

    private static func checkField(_ fields: [String]) throws(DPoPRefusal) -> String {
        try require(fields.count == 1, "fields")
        let text = fields.first ?? ""
        let hasComma = text.utf8.withContiguousStorageIfAvailable { $0.contains(UInt8(ascii: ",")) }
        try require(!(hasComma ?? text.utf8.contains(UInt8(ascii: ","))), "comma")
        return text
    }

    private static func checkFormat(_ text: String) throws(DPoPRefusal) -> (JWS, payload: JOSEObject) {
        try require(text.utf8.count <= maximumBytes, "length")
        guard let jws = JWS(text), let payload = JOSEObject(jws.payload) else { throw .invalid(reason: "format") }
        return (jws, payload)
    }

    /// The checks that depend on the text of the header alone.
    private static func checkHeader(_ jws: JWS) throws(DPoPRefusal) -> SelfSignedHeader {
        do {
            return try SelfSignedHeader(jws)
        } catch {
            throw .invalid(reason: error.rawValue)
        }
    }

    private static func checkType(_ header: SelfSignedHeader) throws(DPoPRefusal) {
        try require(header.type == "dpop+jwt", "typ")
    }

    private static func checkAlgorithm(_ header: SelfSignedHeader, _ rules: DPoPRules) throws(DPoPRefusal) {
        try require(rules.admits(header.algorithm), "alg")
    }

    private static func checkClaims(_ payload: JOSEObject, _ now: Double) throws(DPoPRefusal) -> DPoPClaims {
        guard let claims = DPoPClaims(payload) else { throw .invalid(reason: "claims") }
        try require((1...256).contains(claims.jti.utf8.count), "length of jti")
        try require(!claims.jti.utf8.contains(0), "NUL in jti")
        try require(claims.exp.map { $0 > now - leeway } ?? true, "exp")
        try require(claims.nbf.map { $0 <= now + leeway } ?? true, "nbf")
        return claims
    }

    private static func checkSignature(_ jws: JWS, _ header: SelfSignedHeader) throws(DPoPRefusal) {
        try require(header.hasSigned(jws), "signature")
    }

    private static func checkMethod(_ claims: DPoPClaims, _ method: String) throws(DPoPRefusal) {
        try require(claims.htm.utf8.elementsEqual(method.utf8), "htm")
    }

    private static func checkURL(_ claims: DPoPClaims, _ url: RequestedURL) throws(DPoPRefusal) {
        try require(url.isNamed(by: claims.htu), "htu")
    }

    private static func checkAccessToken(_ claims: DPoPClaims, _ accessToken: String?) throws(DPoPRefusal) {
        guard let accessToken else { return }
        let hash = Base64.urlEncode(Array(SHA256.hash(data: Array(accessToken.utf8))))
        try require(claims.ath?.utf8.elementsEqual(hash.utf8) ?? false, "ath")
    }

    /// - Returns: when the nonce was made; `nil` for a proof without one.
    private func checkNonce(_ claims: DPoPClaims, _ realm: Realm, _ now: Double) throws(DPoPRefusal) -> Double? {
        guard let nonce = claims.nonce else { return nil }
        guard let time = nonces.time(of: nonce, realm: realm.id, at: now) else {
            throw nonceDue("nonce", realm: realm)
        }
        guard now - time <= Double(realm.dpop.nonceLifetime) else { throw nonceDue("old nonce", realm: realm) }
        return time
    }

    /// With a nonce, `iat` is not compared with the clock: so one retry mends a phone whose clock is wrong.
    private func checkTime(
        _ claims: DPoPClaims, isByNonce: Bool, _ realm: Realm, _ rules: DPoPRules, _ now: Double
    ) throws(DPoPRefusal) {
        if isByNonce { return }
        let mayLackNonce = !realm.dpop.requiresNonce && rules == .standard
        guard mayLackNonce else { throw nonceDue("no nonce", realm: realm) }
        guard abs(now - claims.iat) <= Self.leeway else { throw nonceDue("iat", realm: realm) }
    }
}
