import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import TokenEndpoint

/// Reads what a server that runs on this machine says of itself.
enum OperationsListener {
    /// One metric without labels; `nil` when no server answers there within a second, or it has no such metric.
    static func value(of metric: String, at address: ListenAddress) async -> Double? {
        do {
            let request = HTTPClientRequest(url: "http://\(address)/metrics")
            let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(1))
            guard answer.status == .ok else { return nil }
            let body = try await answer.body.collect(upTo: 1 << 20)
            return String(buffer: body).split(separator: "\n").lazy
                .compactMap { line in line.hasPrefix(metric + " ") ? Double(line.dropFirst(metric.count + 1)) : nil }
                .first { $0 < 1e15 }
        } catch {
            return nil
        }
    }
}
