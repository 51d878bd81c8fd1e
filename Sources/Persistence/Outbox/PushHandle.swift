/// What a push service calls a device by: opaque, sealed at rest, for providers of channel `push` alone. A line of the
/// key file that is removed takes handles along; an app sets its handle again at each start.
package enum PushHandle {
    /// In bytes of UTF-8.
    package static let maximumBytes = 512

    /// For `device_key.push_handle`; `nil` when the key file has no line to seal with.
    package static func sealed(_ text: String, realm: UUIDValue, keyring: Keyring) -> [UInt8]? {
        try? keyring.seal(Array(text.utf8), for: .pushHandle, realm: realm, aad: aad(realm))
    }

    /// `nil` when its line of the key file is gone.
    static func opened(_ sealed: [UInt8], realm: UUIDValue, keyring: Keyring) -> String? {
        guard let bytes = try? keyring.open(sealed, for: .pushHandle, realm: realm, aad: aad(realm)) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func aad(_ realm: UUIDValue) -> [UInt8] { Array("push handle".utf8) + realm.bytes }
}
