import Crypto
package import Persistence

/// A code of six to eight digits: how it is drawn and how it is remembered.
package enum OneTimeCode {
    /// So many digits, each of the values equally likely.
    static func random(digits: Int) -> String {
        String((0..<digits).map { _ in "0123456789".randomElement() ?? "0" })
    }

    /// What the database sees of a code: an HMAC under a key it does not hold (docs/decisions/0002).
    ///
    /// The statement adds the row's salt by an outer SHA-256, so that one round trip compares without a read first.
    package static func keyed(_ code: String, realm: UUIDValue, addressKey: String, under key: ServerKey) -> [UInt8] {
        key.hmac(.codePepper, parts(code, realm: realm, addressKey: addressKey))
    }

    /// The same for the fixed code of a test identity, which outlives lines of the key file.
    static func keyed(_ code: String, realm: UUIDValue, addressKey: String, under key: DataKey) -> [UInt8] {
        key.hmac(parts(code, realm: realm, addressKey: addressKey))
    }

    /// Everything the database may hold of a code: its HMAC under each line of the key file, newest first, and in
    /// realms with test identities under the data keys of their codes.
    static func candidates(_ presented: TypedCode, realm: Realm, addressKey: String, keyring: Keyring) -> [[UInt8]] {
        let code = presented.text
        var candidates = keyring.keys.map { keyed(code, realm: realm.id, addressKey: addressKey, under: $0) }
        for sealed in realm.testCodeKeys {
            // `serve` and `doctor` report a key that does not open; ordinary codes still work.
            guard let key = try? keyring.open(sealed, realm: realm.id) else { continue }
            candidates.append(keyed(code, realm: realm.id, addressKey: addressKey, under: key))
        }
        return candidates
    }

    private static func parts(_ code: String, realm: UUIDValue, addressKey: String) -> [[UInt8]] {
        [realm.bytes, Array(addressKey.utf8), Array("otp".utf8), Array(code.utf8)]
    }
}
