import Foundation

/// A self-made authority for `localhost` and one that has signed nothing here, made once by `openssl`.
enum Certificates {
    struct Files: Sendable {
        let certificate: String
        let key: String
        let stranger: String
    }

    static let files: Result<Files, any Error> = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "postern-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        func path(_ name: String) -> String { folder.appending(path: name).path }
        for name in ["server", "stranger"] {
            try ChildProcess.run([
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                "-keyout", path("\(name).key"), "-out", path("\(name).pem"),
            ])
        }
        return Files(
            certificate: path("server.pem"), key: path("server.key"), stranger: path("stranger.pem"))
    }
}
