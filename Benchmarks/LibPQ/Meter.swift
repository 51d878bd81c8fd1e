import Foundation
import Glibc

/// CPU and context switches of this process and of PostgreSQL's, up to now.
struct Meter {
    /// Microseconds.
    var clientCPU = 0.0
    var clientSwitches = 0.0
    /// Microseconds.
    var serverCPU = 0.0
    var serverSwitches = 0.0

    /// - Parameter postmaster: the process whose children count; those that are there, so measure while no session
    ///   comes or goes.
    init(postmaster: Int) {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        for time in [usage.ru_utime, usage.ru_stime] { clientCPU += Double(time.tv_sec) * 1e6 + Double(time.tv_usec) }
        clientSwitches = Double(usage.ru_nvcsw + usage.ru_nivcsw)
        for child in Self.words("/proc/\(postmaster)/task/\(postmaster)/children") {
            serverCPU += (Self.words("/proc/\(child)/schedstat").first.flatMap { Double($0) } ?? 0) / 1000
            let status = Self.words("/proc/\(child)/status")
            for name in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
                guard let index = status.firstIndex(of: name), index + 1 < status.count else { continue }
                serverSwitches += Double(status[index + 1]) ?? 0
            }
        }
    }

    private static func words(_ path: String) -> [String] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isWhitespace).map(String.init)
    }
}
