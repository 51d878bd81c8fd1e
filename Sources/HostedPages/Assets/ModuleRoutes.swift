import HTTPTypes
import TokenEndpoint

/// `GET /sdk/v1/postern.js`: the module with which pages of other origins prove phone numbers and are trusted devices.
///
/// Its name has a version in place of a hash, because pages name it in their own sources.
struct ModuleRoutes: Sendable {
    private let module = Document(
        Array((Embedded.templates.first { $0.name == "postern.js" }?.text ?? "").utf8),
        mediaType: "text/javascript; charset=utf-8")

    var routes: [Route] {
        [Route("/sdk/v1/postern.js", [.get: { [module] in .cacheable(module, seconds: 300, $0) }]).cors(.all)]
    }
}
