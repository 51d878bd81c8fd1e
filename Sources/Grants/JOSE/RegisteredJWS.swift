/// A JWS of a caller whose keys are registered, as clients sign their assertions. Its signature is not verified yet.
///
/// Read: `alg`, `kid`, `typ`. Refused: `crit` and `b64`. Never used: `jwk`, `jku`, `x5c`, `x5u`: keys come from the
/// registration alone.
package struct RegisteredJWS {
    package let algorithm: ClientKey.Algorithm
    package let kid: String?
    package let typ: String?
    package var payload: [UInt8] { jws.payload }
    private let jws: JWS

    /// `nil` for anything that is not a JWS with a JSON header and an algorithm accepted here.
    package init?(_ text: String) {
        guard let jws = JWS(text), let header = jws.header(), !header.hasExtension, header.isAbsentOrText("kid"),
            header.isAbsentOrText("typ"), let algorithm = header.text("alg").flatMap(ClientKey.Algorithm.init)
        else { return nil }
        self.algorithm = algorithm
        kid = header.text("kid")
        typ = header.text("typ")
        self.jws = jws
    }

    /// Whether one of the keys made the signature: the one the header names, or any that has no name.
    package func isSigned(by keys: [ClientKey]) -> Bool {
        keys.contains { key in
            (kid == nil || key.kid == nil || key.kid == kid)
                && key.isValidSignature(jws.signature, for: jws.input, algorithm)
        }
    }
}
