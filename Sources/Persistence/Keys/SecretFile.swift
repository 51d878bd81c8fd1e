public import Glibc

/// Who may read a file that holds a secret.
public enum SecretFile {
    /// Whether only its owner may read it (mode 0400 or 0600), or root lends it to this process's group alone (0440),
    /// as Kubernetes mounts a Secret for a process that is not root.
    /// - Parameter status: of the open file: a path may name another one a moment later.
    public static func isPrivate(_ status: stat) -> Bool {
        isPrivate(status, user: geteuid(), group: getegid())
    }

    static func isPrivate(_ status: stat, user: uid_t, group: gid_t) -> Bool {
        let mode = status.st_mode & 0o7777
        if mode == 0o440 { return status.st_uid == 0 && status.st_gid == group && group != 0 && user != 0 }
        return mode == 0o400 || mode == 0o600
    }
}
