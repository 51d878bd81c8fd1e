import CLibPQ
import Foundation
import NIOCore
import NIOPosix

/// Compares ways to drive PostgreSQL through libpq: one JSON object per line and measurement.
///
/// `BenchLibPQ CONNINFO ADMIN_CONNINFO POSTMASTER_PID SECONDS SESSIONS RUN [STRATEGY…]`; RUN must be new for the
/// database by 1000.
@main
struct Main {
    static let strategies: [(name: String, make: @Sendable (String) -> any Strategy)] = [
        ("product", { Product($0, connections: 16) }),
        ("thread", { Threads($0, connections: 16, looksFirst: true) }),
        ("thread, no look first", { Threads($0, connections: 16, looksFirst: false) }),
        ("readiness", { ReadinessSource($0, connections: 16) }),
        ("readiness, reactor sends", { SendingReactor($0, connections: 16) }),
        ("pipeline on 1", { Pipeline($0, connections: 1) }),
        ("pipeline on 2", { Pipeline($0, connections: 2) }),
        ("pipeline on 4", { Pipeline($0, connections: 4) }),
        ("pipeline on 8", { Pipeline($0, connections: 8) }),
    ]

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 6, let postmaster = Int(arguments[2]), let seconds = Double(arguments[3]),
            let sessions = Int(arguments[4]), var run = Int(arguments[5])
        else { fatalError("usage: CONNINFO ADMIN_CONNINFO POSTMASTER_PID SECONDS SESSIONS RUN [STRATEGY…]") }
        let chosen = arguments.dropFirst(6)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: System.coreCount)
        let loops = group.makeIterator().map { LoopExecutor($0) }
        let admin = PQconnectdb(arguments[1])
        for workload in Workload.allCases {
            for callers in [16, 64] {
                for (name, make) in strategies where chosen.isEmpty || chosen.contains(name) {
                    run += 1
                    PQclear(PQexec(admin, "SELECT bench.seed_chains(\(run), \(callers))"))
                    let strategy = make(arguments[0])
                    let measured = Callers(
                        callers, on: loops, strategy, workload, run: run, sessions: sessions)
                    try await Task.sleep(for: .milliseconds(400))
                    let (before, count, start) = (Meter(postmaster: postmaster), measured.requests, ContinuousClock.now)
                    try await Task.sleep(for: .seconds(seconds))
                    let (after, end, stop) = (Meter(postmaster: postmaster), measured.requests, ContinuousClock.now)
                    let latencies = await measured.stop()
                    await strategy.close()
                    let requests = Double(end - count)
                    let cell: [String: Any] = [
                        "workload": workload.rawValue, "callers": callers, "strategy": name,
                        "failures": measured.failures, "per_second": requests / ((stop - start) / .seconds(1)),
                        "client_us": (after.clientCPU - before.clientCPU) / requests,
                        "server_us": (after.serverCPU - before.serverCPU) / requests,
                        "client_switches": (after.clientSwitches - before.clientSwitches) / requests,
                        "server_switches": (after.serverSwitches - before.serverSwitches) / requests,
                        "p50_us": latencies[latencies.count / 2] / .microseconds(1),
                        "p99_us": latencies[latencies.count * 99 / 100] / .microseconds(1),
                    ]
                    let line = try JSONSerialization.data(withJSONObject: cell, options: .sortedKeys)
                    FileHandle.standardOutput.write(line + Data("\n".utf8))
                }
            }
        }
        PQfinish(admin)
        try await group.shutdownGracefully()
    }
}
