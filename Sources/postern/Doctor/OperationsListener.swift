import Delivery
import TokenEndpoint

/// Reads what a server that runs on this machine says of itself.
enum OperationsListener {
    /// One metric without labels; `nil` when no server answers there within a second, or it has no such metric.
    static func value(of metric: String, at address: ListenAddress) async -> Double? {
        var request = HTTPClient.Request(url: "http://\(address)/metrics")
        request.total = .seconds(1)
        guard let answer = try? await HTTPClient().answer(to: request), answer.status == 200 else { return nil }
        return String(decoding: answer.body, as: UTF8.self).split(separator: "\n").lazy
            .compactMap { line in line.hasPrefix(metric + " ") ? Double(line.dropFirst(metric.count + 1)) : nil }
            .first { $0 < 1e15 }
    }
}
