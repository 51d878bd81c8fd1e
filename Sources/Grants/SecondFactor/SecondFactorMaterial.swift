import Encoding
import Persistence

/// What SQL gives to compare a second factor with: the sealed seed, and the data keys that open it and compare recovery
/// codes. Both come in one answer, so that a sign-in needs no extra statement for a key
/// (`postern.second_factor_material`).
struct SecondFactorMaterial: Sendable, Redacted {
    let sealedSeed: [UInt8]
    /// The data key that seals the seed, sealed.
    let seedKey: SealedDataKey
    /// The data keys of the account's recovery codes.
    let recoveryKeys: [SealedDataKey]

    private static let marker: [UInt8] = [0x03] + Array("pdk".utf8)

    /// `03 "pdk"`, then framed values (length in 4 bytes): the seed's data key, the seed, each recovery key's id and
    /// seal. - Throws: `temporarily_unavailable` for bytes of another form.
    init(_ bytes: [UInt8]) throws(TokenError) {
        guard bytes.starts(with: Self.marker), let values = Self.values(bytes.dropFirst(Self.marker.count)),
            values.count >= 2, let id = DataKey.id(in: Array(values[1]))
        else { throw .unavailable("a second factor is of an unknown form") }
        sealedSeed = Array(values[1])
        seedKey = SealedDataKey(id: id, purpose: .totpSeed, sealed: Array(values[0]))
        recoveryKeys = values.dropFirst(2).compactMap { value in
            UUIDValue(bytes: value.prefix(16)).map {
                SealedDataKey(id: $0, purpose: .recoveryCode, sealed: Array(value.dropFirst(16)))
            }
        }
    }

    /// `nil` when a value is cut short.
    private static func values(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>]? {
        var rest = bytes
        var values: [ArraySlice<UInt8>] = []
        while !rest.isEmpty {
            guard let length = rest.prefix(4).bigEndianInteger(as: UInt32.self), rest.count - 4 >= Int(length) else {
                return nil
            }
            values.append(rest.dropFirst(4).prefix(Int(length)))
            rest = rest.dropFirst(4 + Int(length))
        }
        return values
    }

    /// The seed. - Throws: `temporarily_unavailable` when its line is not in the key file.
    func seed(keyring: Keyring, realm: UUIDValue, factor: UUIDValue) throws(TokenError) -> TOTPSeed {
        let opened = try? keyring.open(seedKey, realm: realm).open(sealedSeed, aad: TOTPSeed.aad(realm, factor))
        guard let opened, let seed = TOTPSeed(opened) else {
            throw .unavailable(
                "a TOTP seed cannot be opened: postern doctor says which line of the key file is missing")
        }
        return seed
    }

    /// What the database may hold of a recovery code: its HMAC under each data key.
    func candidates(
        for code: TypedCode, keyring: Keyring, realm: UUIDValue, factor: UUIDValue
    ) throws(TokenError) -> [[UInt8]] {
        var candidates: [[UInt8]] = []
        for sealed in recoveryKeys {
            guard let key = try? keyring.open(sealed, realm: realm) else {
                throw .unavailable(
                    "recovery codes cannot be compared: postern doctor says which line of the key file is missing")
            }
            candidates.append(RecoveryCode.keyed(code, realm: realm, factor: factor, under: key))
        }
        return candidates
    }
}
