@testable import Grants
import Persistence
import Testing
@testable import TokenEndpoint

@Suite("Introspection")
struct IntrospectionTests {
    private static let signed = "application/token-introspection+jwt"

    @Test(arguments: [
        ([signed], true), ([signed.uppercased()], true), (["\(signed);q=0.1"], true), (["\(signed) ; Q=1.000"], true),
        (["\(signed), application/json;q=0.9"], true), (["application/json;q=0.9", signed], true),
        (["\(signed);q=0.5, */*;q=0.4"], true), (["\(signed), application/*;q=0.8, */*"], true),
        (["\(signed), application/json;q=0, */*"], true), (["\(signed), text/html"], true),
        ([], false), ([""], false), (["*/*"], false), (["application/*"], false), (["application/json"], false),
        (["*/*, application/json;q=0.9"], false), (["application/*, application/json;q=0"], false),
        (["application/jwt"], false), (["\(signed), application/json"], false), (["\(signed), */*"], false),
        (["\(signed);q=0.5, application/json;q=0.6"], false), (["\(signed);q=0"], false),
        (["\(signed);q=2"], false), (["\(signed);q=1.001"], false), (["\(signed);q=0.1234"], false),
        (["\(signed);q="], false), (["\(signed)x"], false), ([",;,q=1;;"], false),
        ([String(repeating: "a/b,", count: 100_000) + signed], false),
    ])
    func `a JWT is for a client that names it and likes it better than JSON`(accept: [String], isSigned: Bool) {
        #expect(IntrospectionRoutes.wantsJWT(accept) == isSigned)
    }

    private func caller(_ permissions: Set<String>, _ resources: [String], key: UUIDValue = .random()) -> Client {
        var client = Client(
            key: key, clientID: "api", isConfidential: true, enabled: true, requiresDPoP: false,
            issuesJWTAccessTokens: false, rpID: nil, secretHashes: [], permissions: permissions,
            accessTokenLifetime: nil, refreshTokenLifetime: nil, webOrigins: [], androidOrigins: [], iosApps: [],
            androidApps: [], keys: [], signingAlgorithm: nil)
        client.resources = resources
        return client
    }

    @Test(
        arguments: [
            (["https://api"], ["https://api"]), (["https://other"], nil),
            (["https://api", "https://other"], ["https://api"]),
            (["app"], nil), (["https://api/"], ["https://api/"]), (["https://api/v1"], nil), (["HTTPS://API"], nil),
        ] as [([String], [String]?)])
    func `a resource server sees the tokens for it, and of their audience its own part`(
        audience: [String], visible: [String]?
    ) {
        let server = caller(["ept:introspection"], ["https://api", "https://third"])
        #expect(IntrospectionRoutes.visible(audience, of: .random(), to: server) == visible)
    }

    @Test func `a client without resources sees every token, and without the permission its own alone`() {
        #expect(IntrospectionRoutes.visible(["x"], of: .random(), to: caller(["ept:introspection"], [])) == ["x"])
        #expect(IntrospectionRoutes.visible(["x"], of: .random(), to: caller([], ["x"])) == nil)
        let key = UUIDValue.random()
        #expect(IntrospectionRoutes.visible(["x"], of: key, to: caller([], [], key: key)) == ["x"])
        let server = caller(["ept:introspection"], ["y"], key: key)
        #expect(IntrospectionRoutes.visible(["x", "z"], of: key, to: server) == ["x", "z"])
        #expect(IntrospectionRoutes.visible(["x", "y"], of: key, to: server) == ["y"])
    }
}

@Suite("Entity tags")
struct DocumentTests {
    private let document = Document(Array("{}".utf8))

    @Test func `a tag is strong, and another for other bytes`() {
        #expect(document.tag.first == "\"" && document.tag.last == "\"" && document.tag.count > 10)
        #expect(document.tag == Document(Array("{}".utf8)).tag)
        #expect(document.tag != Document(Array("{ }".utf8)).tag)
    }

    @Test func `a list, a weak tag and an asterisk match`() {
        for fields in [
            [document.tag], ["W/" + document.tag], ["*"], ["\"a\", \(document.tag)"], ["\"a\"", document.tag],
            [" W/\"a\" ,\t\(document.tag) "],
        ] { #expect(document.matches(fields), "\(fields)") }
        for fields in [
            [], [""], ["\"a\""], ["w/" + document.tag], ["W/ " + document.tag], [String(document.tag.dropFirst())],
            ["**"],
        ] { #expect(!document.matches(fields), "\(fields)") }
    }
}
