/// What is wrong with a key file, or with something sealed. Holds no key material.
public enum KeyringError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file cannot be opened or read.
    case unreadable(path: String, reason: String)
    /// A directory, device or pipe.
    case notAFile(path: String)
    /// Group or others may read or write it.
    case tooPermissive(path: String, mode: String)
    /// Belongs to neither this process's user nor root.
    case foreignOwner(path: String)
    /// No line holds a key.
    case noKey
    /// A line is not base64 of 32 bytes.
    case malformedLine(Int)
    /// The file contains a key twice.
    case duplicateKey(line: Int)
    /// Encryption failed.
    case cannotSeal
    /// Sealed under a key that is not in the ring.
    case unknownKey
    /// Altered, cut short, or sealed for something else.
    case cannotOpen

    /// What an operator can do about it.
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "key file \(path) cannot be read: \(reason)"
        case .notAFile(let path): "key file \(path) is not a regular file"
        case .tooPermissive(let path, let mode):
            "key file \(path) has mode \(mode); only 0400 and 0600 are accepted (chmod 0400), and 0440 of root "
                + "and the server's group"
        case .foreignOwner(let path):
            "key file \(path) belongs to another user; it must belong to the server's user or root"
        case .noKey: "the key file holds no key; a key is one line of base64 of 32 bytes"
        case .malformedLine(let line): "line \(line) of the key file is not base64 of 32 bytes"
        case .duplicateKey(let line): "line \(line) of the key file repeats a key"
        case .cannotSeal: "encryption failed"
        case .unknownKey: "sealed under a key that is not in the key file"
        case .cannotOpen: "sealed data was altered or belongs elsewhere"
        }
    }
}
