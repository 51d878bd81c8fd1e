import Glibc

extension Keyring {
    /// The largest key file that is read.
    private static var maximumFileSize: Int { 64 * 1024 }

    /// Reads a key file. It must belong to this process's user or to root, and no other user may read it
    /// (``SecretFile/isPrivate(_:)``).
    public init(contentsOf path: String) throws(KeyringError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: Self.lastError) }
        defer { close(descriptor) }

        // Check the opened file, not the path: the path may name another file a moment later.
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(path: path, reason: Self.lastError) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
        guard SecretFile.isPrivate(status) else {
            let digits = String(status.st_mode & 0o7777, radix: 8)
            throw .tooPermissive(path: path, mode: String(repeating: "0", count: max(0, 4 - digits.count)) + digits)
        }
        guard status.st_uid == geteuid() || status.st_uid == 0 else { throw .foreignOwner(path: path) }

        var bytes: [UInt8] = []
        var chunk: [UInt8] = Array(repeating: 0, count: 4096)
        while bytes.count <= Self.maximumFileSize {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadable(path: path, reason: Self.lastError) }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        guard bytes.count <= Self.maximumFileSize, let text = String(validating: bytes, as: UTF8.self) else {
            throw .unreadable(path: path, reason: "not a key file")
        }
        try self.init(parsing: text)
    }

    private static var lastError: String { String(cString: strerror(errno)) }
}
