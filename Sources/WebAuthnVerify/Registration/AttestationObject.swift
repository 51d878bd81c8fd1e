/// An attestation object (WebAuthn L3 §6.5.4): one CBOR map of exactly `fmt`, `attStmt` and `authData`.
public struct AttestationObject: Sendable {
    /// The format identifier, as sent.
    public var fmt: String
    /// The attestation statement.
    public var attStmt: CBORMap
    /// `authData` as received, for signatures.
    public var authData: [UInt8]
    /// `authData`, read.
    public var authenticatorData: AuthenticatorData

    /// Reads an attestation object that fills `bytes`. Map keys may come in any order; see ``CBORReader/KeyOrder/any``.
    public init(parsing bytes: Span<UInt8>) throws(FailureReason) {
        let value: CBORValue
        do throws(CBORError) { value = try CBORValue(parsing: bytes) } catch { throw .cbor(error) }
        guard let map = value.mapping, map.hasOnly("fmt", "attStmt", "authData"),
            let fmt = map["fmt"]?.textString, let attStmt = map["attStmt"]?.mapping,
            let authData = map["authData"]?.byteString
        else { throw .attestation(.malformedObject) }
        self.fmt = fmt
        self.attStmt = attStmt
        self.authData = authData
        do throws(AuthenticatorDataError) {
            authenticatorData = try AuthenticatorData(parsing: authData.span)
        } catch {
            throw .authenticatorData(error)
        }
    }
}
