import Foundation
import HTTPTypes
import TokenEndpoint

/// `/`, `/dev` and `/dev/index.json` of `postern dev`: what there is, and what to do with it.
struct DevIndexPages: Sendable {
    let facts: DevFactsReader

    /// At hosts of realms.
    var routes: [Route] {
        ["/", "/dev", "/dev/index.json"].map { path in
            .dev(path, get: { exchange in await answer(path, host: exchange.host) ?? Answer(.notFound) })
        }
    }

    /// - Parameter host: where it was asked.
    /// - Returns: `nil` for other paths.
    func answer(_ path: String, host: String) async -> Answer? {
        switch path {
        case "/dev": return .seeOther("/")
        case "/":
            guard let facts = try? await facts.facts() else { return .unavailable }
            return DevPage.index(facts, host: host)
        case "/dev/index.json":
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
            guard let facts = try? await facts.facts(), let json = try? encoder.encode(facts) else {
                return .unavailable
            }
            return Answer(json: Array(json))
        default: return nil
        }
    }
}
