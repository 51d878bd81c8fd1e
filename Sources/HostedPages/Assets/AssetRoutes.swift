import Encoding
import Grants
import HTTPTypes
import Persistence
import Synchronization
import TokenEndpoint

/// `/assets/<hash>.css`, `/assets/<hash>.js` and `/brand/<hash>`: never change, so browsers keep them for a year.
final class AssetRoutes: Sendable {
    private let base = Asset(file: "pages.css")
    private let scripts: [String: Asset]
    private let images: BrandStore
    private let known = Mutex<[String: BrandStore.Image]>([:])

    /// Images kept in memory, of all realms: 64 KiB each at most.
    private static let maximumImages = 256

    init(images: BrandStore) {
        self.images = images
        scripts = Dictionary(
            uniqueKeysWithValues: Script.allCases.map { ($0.rawValue, Asset(file: "\($0.rawValue).js")) })
    }

    /// The scripts of pages.
    enum Script: String, CaseIterable {
        /// Posts an authorization response.
        case formPost = "form-post"
        /// Runs passkey ceremonies.
        case passkey
        /// Waits until a link is opened.
        case wait
    }

    var routes: [Route] {
        [
            Route(prefix: "/assets/", [.get: .anonymous { [self] in asset($0) }]),
            Route(prefix: "/brand/", [.get: .anonymous { [self] in try await image($0) }]),
        ]
    }

    /// The style sheets of a look.
    func names(_ brand: Brand) -> AssetNames {
        AssetNames(base: base.name, accent: BrandStyle.asset(brand)?.name)
    }

    /// As a page refers to it.
    func name(of script: Script) -> String { scripts[script.rawValue]?.name ?? "" }

    private func asset(_ exchange: Exchange) -> Answer {
        let name = exchange.pathParameter
        if name == "\(base.name).css" { return Self.immutable(base.content, "text/css; charset=utf-8") }
        if let script = scripts.values.first(where: { "\($0.name).js" == name }) {
            return Self.immutable(script.content, "text/javascript; charset=utf-8")
        }
        for brand in [exchange.realm.brand] + exchange.realm.apps.map({ exchange.realm.brand(of: $0) }) {
            if let style = BrandStyle.asset(brand), "\(style.name).css" == name {
                return Self.immutable(style.content, "text/css; charset=utf-8")
            }
        }
        return Answer(.notFound)
    }

    /// Only hashes that the realm uses reach the database.
    private func image(_ exchange: Exchange) async throws -> Answer {
        let name = exchange.pathParameter
        guard let hash = Hex.decode(name), hash.count == 32, exchange.realm.uses(image: name) else {
            return Answer(.notFound)
        }
        let key = "\(exchange.realm.id)/\(name)"
        let found: BrandStore.Image?
        if let kept = known.withLock({ $0[key] }) {
            found = kept
        } else {
            found = try await images.image(realm: exchange.realm.id, hash: hash)
            if let found {
                known.withLock { known in
                    if known.count >= Self.maximumImages { known.removeAll() }
                    known[key] = found
                }
            }
        }
        guard let found else { return Answer(.notFound) }
        var answer = Self.immutable(found.data, found.mediaType)
        // An SVG that is opened by itself is a document: it may run nothing (RFC 7303, CSP Level 3 §6.2).
        answer.headers[.contentSecurityPolicy] = "sandbox; default-src 'none'"
        return answer
    }

    private static func immutable(_ content: [UInt8], _ type: String) -> Answer {
        var answer = Answer(
            .ok, headers: [.contentType: type, .cacheControl: "public, max-age=31536000, immutable"])
        answer.body = content
        return answer
    }
}

extension Realm {
    /// Whether a brand of the realm shows the image with that SHA-256.
    fileprivate func uses(image: String) -> Bool {
        ([brand] + apps.map(brand(of:))).contains { [$0.logo, $0.logoDark, $0.favicon].contains(image) }
    }
}
