import HTTPTypes
import TokenEndpoint

/// `GET /sdk/v1/postern.js`: the module with which pages of other origins prove phone numbers and are trusted devices,
/// and `core.js`, which it imports.
///
/// Their names have a version in place of a hash, because pages name them in their own sources. Within a version
/// `core.js` only gains exports, so that a cached file fits a newer one.
struct ModuleRoutes: Sendable {
    private let module = Self.document("postern.js")
    private let core = Self.document("core.js")

    var routes: [Route] {
        [
            Route("/sdk/v1/postern.js", [.get: .anonymous { [module] in .cacheable(module, seconds: 300, $0) }]),
            Route("/sdk/v1/core.js", [.get: .anonymous { [core] in .cacheable(core, seconds: 300, $0) }]),
        ].map { $0.cors(.all) }
    }

    private static func document(_ name: String) -> Document {
        Document(
            Array((Embedded.templates.first { $0.name == name }?.text ?? "").utf8),
            mediaType: "text/javascript; charset=utf-8")
    }
}
