import HTTPTypes
import TokenEndpoint

/// `GET /sdk/v1/<file>`: the modules of `clients/js`, with which pages of any origin sign people in, prove phone
/// numbers and are trusted devices.
///
/// Their names have a version in place of a hash, because pages name them in their own sources. Within a version
/// the modules only gain exports, so that a cached file fits a newer one.
struct ModuleRoutes: Sendable {
    private let modules = Dictionary(
        uniqueKeysWithValues: Embedded.modules.filter { $0.name.hasSuffix(".js") }.map { file in
            (file.name, Document(Array(file.text.utf8), mediaType: "text/javascript; charset=utf-8"))
        })

    var routes: [Route] {
        [Route(prefix: "/sdk/v1/", [.get: .anonymous { [self] in module($0) }]).cors(.all)]
    }

    private func module(_ exchange: Exchange) -> Answer {
        guard let module = modules[exchange.pathParameter] else { return Answer(.notFound) }
        return .cacheable(module, seconds: 300, exchange)
    }
}
