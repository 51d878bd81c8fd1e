import Foundation

/// A file of the user's own (mode 0600) in a folder of the user's own (0700). Its functions block.
struct PrivateFile: Sendable {
    let directory: String
    let name: String

    var path: String { "\(directory)/\(name)" }

    /// - Throws: ``PosternError/misuse(_:)`` for a link, another owner, or a mode that lets others in.
    func read() throws -> Data? {
        guard try checkDirectory() else { return nil }
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            if errno == ELOOP { throw PosternError.misuse("\(path) is a symbolic link; it must be a file") }
            throw failure()
        }
        defer { close(file) }
        guard try check(path, isDirectory: false) else { return nil }
        return try contents(file)
    }

    /// Replaces the file, and is durable when it returns. A process that ends in between leaves the old file or the new.
    /// - Parameter condition: is asked right before the file is replaced.
    /// - Returns: whether it was replaced.
    func write(_ data: Data?, if condition: () throws -> Bool) throws -> Bool {
        try makeDirectory()
        let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure() }
        defer { close(folder) }
        // One file beside for each write: processes of two containers may have one number.
        let beside = "\(path).\(getpid()).\(UInt32.random(in: .min ... .max)).new"
        var isInPlace = false
        defer { if !isInPlace { unlink(beside) } }
        if let data { try fill(beside, data) }
        lock(folder)
        defer { flock(folder, LOCK_UN) }
        guard try condition() else { return false }
        if data != nil {
            guard rename(beside, path) == 0 else { throw failure() }
        } else {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure() }
        }
        isInPlace = true
        guard fsync(folder) == 0 else { throw failure() }
        sweep()
        return true
    }

    /// Moves the file to `<name>.damaged`, unless another process has put a good one in its place.
    func setAside(_ damaged: Data?) throws {
        let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure() }
        defer { close(folder) }
        lock(folder)
        defer { flock(folder, LOCK_UN) }
        guard try read() == damaged else { return }
        guard rename(path, path + ".damaged") == 0 || errno == ENOENT else { throw failure() }
    }

    func forgetAside() throws {
        guard unlink(path + ".damaged") == 0 || errno == ENOENT else { throw failure() }
    }

    func openLock() throws -> FileLock {
        try makeDirectory()
        let file = open(path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if file < 0, errno == ELOOP { throw PosternError.misuse("\(path).lock is a symbolic link; it must be a file") }
        guard file >= 0 else { throw failure() }
        return FileLock(descriptor: file)
    }

    private func contents(_ file: Int32) throws -> Data {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while data.count <= Document.mostBytes {
            let count = Foundation.read(file, &buffer, buffer.count)
            if count == 0 { return data }
            if count > 0 { data.append(contentsOf: buffer[..<count]) } else if errno != EINTR { throw failure() }
        }
        return data
    }

    private func fill(_ path: String, _ data: Data) throws {
        unlink(path)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure() }
        defer { close(file) }
        guard fchmod(file, 0o600) == 0 else { throw failure() }
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { throw failure() }
        }
        guard fsync(file) == 0 else { throw failure() }
    }

    /// Waits up to a second for the other processes that are replacing a file here, which takes them microseconds. One that
    /// was stopped meanwhile is not waited for.
    private func lock(_ folder: Int32) {
        for _ in 0..<1_000 {
            if flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { return }
            usleep(1_000)
        }
    }

    /// Removes what processes left that ended while they wrote.
    private func sweep() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for left in names where left.hasPrefix(name + ".") && left.hasSuffix(".new") {
            let process = pid_t(left.dropFirst(name.count + 1).prefix { $0 != "." }) ?? 0
            if process > 0, kill(process, 0) != 0, errno == ESRCH { unlink("\(directory)/\(left)") }
        }
    }

    private func makeDirectory() throws {
        if try checkDirectory() { return }
        let parent = (directory as NSString).deletingLastPathComponent
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw failure() }
        guard try checkDirectory() else { throw failure() }
    }

    /// - Returns: whether it is there. A link to a folder is one.
    private func checkDirectory() throws -> Bool { try check(directory + "/.", isDirectory: true) }

    /// Asks the file manager: for `stat` an app would have to give a reason in its privacy manifest.
    /// - Returns: whether it is there.
    private func check(_ path: String, isDirectory: Bool) throws -> Bool {
        let attributes: [FileAttributeKey: Any]
        do {
            attributes = try FileManager.default.attributesOfItem(atPath: path)
        } catch let error as CocoaError where [.fileReadNoSuchFile, .fileNoSuchFile].contains(error.code) {
            return false
        }
        let shown = isDirectory ? directory : path
        guard attributes[.type] as? FileAttributeType == (isDirectory ? .typeDirectory : .typeRegular) else {
            throw PosternError.misuse("\(shown) is not a \(isDirectory ? "folder" : "file")")
        }
        guard let owner = (attributes[.ownerAccountID] as? NSNumber)?.uint32Value,
            let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue
        else { throw PosternError.misuse("\(shown) has no owner and mode") }
        let octal = String(mode, radix: 8)
        guard owner == geteuid() else {
            throw PosternError.misuse("\(shown) (mode \(octal)) belongs to user \(owner), not to this one")
        }
        guard mode & 0o077 == 0 else {
            throw PosternError.misuse("\(shown) has mode \(octal): chmod \(isDirectory ? "700" : "600") it")
        }
        return true
    }

    private func failure() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}

/// The lock that processes see. It ends with the process at the latest.
struct FileLock: Sendable {
    fileprivate let descriptor: Int32

    /// - Returns: whether it is held now. A file system without locks counts as held.
    func take() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK }

    func close() { _ = Foundation.close(descriptor) }
}
