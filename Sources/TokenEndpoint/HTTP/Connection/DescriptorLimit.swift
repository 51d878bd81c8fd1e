import Glibc

/// How many descriptors the process may have.
enum DescriptorLimit {
    /// Raises the soft limit to the hard one. - Returns: the limit now.
    static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many connections of clients fit, so that the database, the log and the operators' listener always find a
    /// descriptor.
    static func connections(wanted: Int, databaseConnections: Int) -> Int {
        // A database connection has a socket and a pipe.
        min(wanted, max(16, raise() - 96 - 3 * databaseConnections))
    }
}
