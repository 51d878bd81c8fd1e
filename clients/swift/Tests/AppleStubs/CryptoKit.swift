// What the library uses of Apple's framework, as declared there; nothing of it runs. `typecheck` says why.
import Foundation
import Security

public enum CryptoKitError: Error { case incorrectKeySize }

public struct SHA256Digest: Sequence {
    public func makeIterator() -> Array<UInt8>.Iterator { [].makeIterator() }
}

public struct SHA256 {
    public static func hash<D: DataProtocol>(data: D) -> SHA256Digest { SHA256Digest() }
}

public enum P256 {
    public enum Signing {
        public struct ECDSASignature: Sendable { public var rawRepresentation: Data { Data() } }
        public struct PublicKey: Sendable { public var rawRepresentation: Data { Data() } }
        public struct PrivateKey: Sendable {
            public init(compactRepresentable: Bool = true) {}
            public init<D: ContiguousBytes>(rawRepresentation: D) throws { throw CryptoKitError.incorrectKeySize }
            public var rawRepresentation: Data { Data() }
            public var publicKey: PublicKey { PublicKey() }
            public func signature<D: DataProtocol>(for data: D) throws -> ECDSASignature { ECDSASignature() }
        }
    }
}

public enum SecureEnclave {
    public static var isAvailable: Bool { false }

    public enum P256 {
        public enum Signing {
            public struct PrivateKey {
                public init(accessControl: SecAccessControl) throws { throw CryptoKitError.incorrectKeySize }
                public init(dataRepresentation: Data) throws { throw CryptoKitError.incorrectKeySize }
                public var dataRepresentation: Data { Data() }
                public var publicKey: CryptoKit.P256.Signing.PublicKey { CryptoKit.P256.Signing.PublicKey() }
                public func signature<D: DataProtocol>(
                    for data: D
                ) throws -> CryptoKit.P256.Signing.ECDSASignature { CryptoKit.P256.Signing.ECDSASignature() }
            }
        }
    }
}
