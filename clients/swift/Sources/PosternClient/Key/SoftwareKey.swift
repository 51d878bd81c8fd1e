import Foundation

#if canImport(CryptoKit)
    import CryptoKit

    /// A key whose secret is in the store.
    struct SoftwareKey: SigningKey {
        private let key: P256.Signing.PrivateKey

        /// A new key.
        init() throws { key = P256.Signing.PrivateKey() }

        /// - Parameter value: 32 bytes. - Throws: ``KeyFailure/lost``.
        init(_ value: Data) throws {
            guard let key = try? P256.Signing.PrivateKey(rawRepresentation: value) else { throw KeyFailure.lost }
            self.key = key
        }

        var value: Data { key.rawRepresentation }
        var point: Data { key.publicKey.rawRepresentation }

        func signature(of message: Data) async throws -> Data {
            guard let signature = try? key.signature(for: message) else { throw KeyFailure.lost }
            return signature.rawRepresentation
        }
    }

    enum Digest {
        static func sha256(_ data: Data) -> Data { Data(SHA256.hash(data: data)) }
    }
#else
    import CLibCrypto

    /// A key whose secret is in the store.
    struct SoftwareKey: SigningKey {
        let value: Data
        let point: Data

        /// A new key.
        init() throws {
            // A number below the order of the curve; almost every 32 bytes are one.
            var random = SystemRandomNumberGenerator()
            for _ in 0..<8 {
                let value = Data((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
                if let point = P256.point(of: value) {
                    self.init(value: value, point: point)
                    return
                }
            }
            throw KeyFailure.lost
        }

        /// - Parameter value: 32 bytes. - Throws: ``KeyFailure/lost``.
        init(_ value: Data) throws {
            guard let point = P256.point(of: value) else { throw KeyFailure.lost }
            self.init(value: value, point: point)
        }

        private init(value: Data, point: Data) { (self.value, self.point) = (value, point) }

        func signature(of message: Data) async throws -> Data {
            guard let signature = P256.sign(message, with: value, point) else { throw KeyFailure.lost }
            return signature
        }
    }

    enum Digest {
        static func sha256(_ data: Data) -> Data {
            var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
            _ = data.withUnsafeBytes { SHA256($0.bindMemory(to: UInt8.self).baseAddress, data.count, &digest) }
            return Data(digest)
        }
    }
#endif
