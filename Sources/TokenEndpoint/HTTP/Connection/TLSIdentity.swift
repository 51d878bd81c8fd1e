import Crypto
import Foundation
import Logging
import NIOSSL
import ServiceLifecycle
import Synchronization

/// A file of the configuration that cannot be used; the text names the variable.
struct UnusableFile: Error, CustomStringConvertible {
    let description: String
}

/// Certificate and key for TLS that ends here, read again when their files change.
final class TLSIdentity: Service, Sendable {
    private struct State {
        var context: NIOSSLContext
        /// SHA-256 of the files read last, usable or not.
        var digest: SHA256Digest
    }

    private static let interval = Duration.seconds(4)
    /// Forward secrecy and authenticated encryption; TLS 1.3 has nothing else.
    private static let cipherSuites = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ]

    private let certificate: String
    private let key: String
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads both files.
    /// - Throws: ``UnusableFile``.
    init(certificate: String, key: String, logger: Logger) throws {
        self.certificate = certificate
        self.key = key
        self.logger = logger
        let files = Self.read(certificate, key)
        state = Mutex(State(context: try Self.context(try files.get()), digest: Self.digest(files)))
    }

    /// What new connections are made with.
    var context: NIOSSLContext { state.withLock { $0.context } }

    /// Looks at the files every few seconds.
    func run() async {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.interval)
                self.readAgain()
            }
        }
    }

    /// Takes changed files into use. If they cannot be used, says so once and keeps the former ones.
    private func readAgain() {
        let files = Self.read(certificate, key)
        let digest = Self.digest(files)
        let isNew = state.withLock { state in
            defer { state.digest = digest }
            return state.digest != digest
        }
        guard isNew else { return }
        do {
            let context = try Self.context(try files.get())
            state.withLock { $0.context = context }
            logger.notice("new TLS certificate in use", metadata: ["file": "\(certificate)"])
        } catch {
            logger.error("the new TLS files are not used, the former ones stay", metadata: ["error": "\(error)"])
        }
    }

    private struct Files {
        let certificate: (path: String, bytes: [UInt8])
        let key: (path: String, bytes: [UInt8])
    }

    private static func read(_ certificate: String, _ key: String) -> Result<Files, UnusableFile> {
        Result { () throws(UnusableFile) in
            Files(
                certificate: (certificate, try bytes("POSTERN_TLS_CERT", certificate)),
                key: (key, try bytes("POSTERN_TLS_KEY", key)))
        }
    }

    private static func bytes(_ variable: String, _ path: String) throws(UnusableFile) -> [UInt8] {
        try using(variable, path) {
            guard access(path, R_OK) == 0 else { throw UnusableFile(description: String(cString: strerror(errno))) }
            return [UInt8](try Data(contentsOf: URL(filePath: path)))
        }
    }

    private static func context(_ files: Files) throws(UnusableFile) -> NIOSSLContext {
        let chain = try using("POSTERN_TLS_CERT", files.certificate.path) {
            guard let chain = try? NIOSSLCertificate.fromPEMBytes(files.certificate.bytes), !chain.isEmpty else {
                throw UnusableFile(description: "it holds no certificate in PEM")
            }
            return chain.map { NIOSSLCertificateSource.certificate($0) }
        }
        let key = try using("POSTERN_TLS_KEY", files.key.path) {
            guard let key = try? NIOSSLPrivateKey(bytes: files.key.bytes, format: .pem) else {
                throw UnusableFile(description: "it holds no private key in PEM, or one with a passphrase")
            }
            return key
        }
        return try using("POSTERN_TLS_KEY", "\(files.key.path), for the certificate \(files.certificate.path)") {
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain, privateKey: .privateKey(key))
            configuration.minimumTLSVersion = .tlsv12
            configuration.cipherSuites = cipherSuites.joined(separator: ":")
            configuration.applicationProtocols = ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        }
    }

    private static func using<Value>(
        _ variable: String, _ path: String, _ body: () throws -> Value
    ) throws(UnusableFile) -> Value {
        do {
            return try body()
        } catch {
            throw UnusableFile(description: "\(variable) names \(path), which cannot be used: \(error)")
        }
    }

    private static func digest(_ files: Result<Files, UnusableFile>) -> SHA256Digest {
        var hash = SHA256()
        switch files {
        case .success(let files):
            hash.update(data: SHA256.hash(data: files.certificate.bytes).withUnsafeBytes { Data($0) })
            hash.update(data: files.key.bytes)
        case .failure: break  // the state does not change with the system's wording
        }
        return hash.finalize()
    }
}
