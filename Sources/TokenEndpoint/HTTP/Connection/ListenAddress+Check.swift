import NIOCore
import NIOPosix

extension ListenAddress {
    /// Listens for a moment, so that a port that is taken ends the start before anything else has begun.
    /// - Throws: `IOError` with the reason.
    package func checkIsFree() async throws {
        guard port != 0 else { return }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: host, port: port).get()
        try await channel.close()
    }
}
