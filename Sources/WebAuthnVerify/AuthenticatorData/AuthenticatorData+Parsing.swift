extension AuthenticatorData {
    /// Reads authenticator data that fills `bytes` (WebAuthn L3 §6.1, §6.5.1).
    ///
    /// Extents are taken from the flags: AT and ED announce what must follow, and nothing else may. The credential
    /// public key is read as CBOR to find its end; its meaning is checked where it is decoded.
    public init(parsing bytes: Span<UInt8>) throws(AuthenticatorDataError) {
        var reader = ByteReader(bytes)
        guard let rpIdHash = reader.take(32), let flags = reader.next(), let counter = reader.bigEndian(width: 4) else {
            throw .truncated
        }
        self.rpIdHash = bytes.array(rpIdHash)
        self.flags = Flags(rawValue: flags)
        self.signCount = UInt32(truncatingIfNeeded: counter)
        if self.flags.contains(.attestedCredentialData) {
            attestedCredentialData = try Self.attestedCredentialData(&reader)
        }
        if self.flags.contains(.extensionData) {
            extensions = try Self.extensions(&reader)
        }
        guard reader.remaining == 0 else { throw .trailingBytes }
    }

    private static func attestedCredentialData(
        _ reader: inout ByteReader
    ) throws(AuthenticatorDataError) -> AttestedCredentialData {
        guard let aaguid = reader.take(16), let length = reader.bigEndian(width: 2) else { throw .truncated }
        guard length > 0 else { throw .emptyCredentialId }
        guard let credentialId = reader.take(Int(length)) else { throw .truncated }
        let bytes = reader.bytes
        var cbor = CBORReader(bytes.extracting(reader.offset..<bytes.count))
        let item: Range<Int>
        do throws(CBORError) { item = try cbor.skip() } catch { throw .cbor(error) }
        guard let key = reader.take(item.count) else { throw .truncated }
        return AttestedCredentialData(
            aaguid: bytes.array(aaguid), credentialId: bytes.array(credentialId), credentialPublicKey: bytes.array(key))
    }

    private static func extensions(_ reader: inout ByteReader) throws(AuthenticatorDataError) -> CBORMap {
        let bytes = reader.bytes
        var cbor = CBORReader(bytes.extracting(reader.offset..<bytes.count))
        let value: CBORValue
        do throws(CBORError) { value = try cbor.value() } catch { throw .cbor(error) }
        guard reader.take(cbor.offset) != nil else { throw .truncated }
        guard let map = value.mapping, map.entries.allSatisfy({ $0.key.textString != nil }) else {
            throw .extensionsNotMap
        }
        return map
    }
}
