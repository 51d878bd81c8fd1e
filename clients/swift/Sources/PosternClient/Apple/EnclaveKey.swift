#if canImport(CryptoKit) && canImport(Security)
    import CryptoKit
    import Foundation
    import Security

    /// A key that never leaves the Secure Enclave. The store has what the Enclave gave out for it, which is worth nothing on
    /// another device.
    struct EnclaveKey: SigningKey {
        /// Signing waits for another processor.
        private static let queue = DispatchQueue(label: "postern.enclave-key")

        /// The key says nothing about threads; it is used on ``queue`` alone.
        private final class Box: @unchecked Sendable {
            let key: SecureEnclave.P256.Signing.PrivateKey
            init(_ key: SecureEnclave.P256.Signing.PrivateKey) { self.key = key }
        }

        private let box: Box
        let point: Data

        private init(_ key: SecureEnclave.P256.Signing.PrivateKey) {
            box = Box(key)
            point = key.publicKey.rawRepresentation
        }

        static var isAvailable: Bool { SecureEnclave.isAvailable }

        static func make() async throws -> StoredKey {
            try await blocking {
                guard
                    let access = SecAccessControlCreateWithFlags(
                        nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, nil)
                else { throw KeyFailure.lost }
                return StoredKey(
                    .enclave, try SecureEnclave.P256.Signing.PrivateKey(accessControl: access).dataRepresentation)
            }
        }

        /// - Throws: ``KeyFailure/lost`` for a key of another device, such as one from a backup.
        static func open(_ value: Data) async throws -> EnclaveKey {
            try await blocking { EnclaveKey(try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: value)) }
        }

        func signature(of message: Data) async throws -> Data {
            let box = box
            return try await Self.blocking { try box.key.signature(for: message).rawRepresentation }
        }

        private static func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
            try await withCheckedThrowingContinuation { continuation in
                queue.async {
                    continuation.resume(
                        with: Result { try body() }.mapError { isLocked($0) ? KeyFailure.locked : .lost })
                }
            }
        }

        private static func isLocked(_ error: any Error) -> Bool {
            (error as NSError).code == Int(KeychainDocument.Status.interactionNotAllowed)
        }
    }
#endif
