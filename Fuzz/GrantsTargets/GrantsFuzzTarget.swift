import Foundation
import Grants

/// What of the texts of callers can be fuzzed: each target takes any bytes, must neither trap nor take long, and
/// compares what was read with another reader.
///
/// The fuzzer and the tests that replay its corpora run the same functions.
public enum GrantsFuzzTarget: String, CaseIterable, Sendable {
    /// The body of a form.
    case formBody
    /// A JWS in compact form, as clients sign their assertions.
    case compactJWS
    case emailAddress
    /// A number as a person types it, with the country of the page in the first byte.
    case phoneNumber
    /// The body of a form whose `scope` and `resource` count.
    case scope
    case redirectURI

    /// Runs the target. - Returns: what does not hold, or nil.
    public func run(_ bytes: [UInt8]) -> String? {
        switch self {
        case .formBody: Self.formBody(bytes)
        case .compactJWS: Self.compactJWS(bytes)
        case .emailAddress: Self.emailAddress(bytes)
        case .phoneNumber: Self.phoneNumber(bytes)
        case .scope: Self.scope(bytes)
        case .redirectURI: Self.redirectURI(bytes)
        }
    }

    /// Whether an input is accepted: a seed that is not leads the fuzzer nowhere.
    public func accepts(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        switch self {
        case .formBody: return (try? FormParameters(parsing: bytes)) != nil
        case .compactJWS: return RegisteredJWS(text) != nil
        case .emailAddress: return EmailAddress(text) != nil
        case .phoneNumber: return Self.number(bytes) != nil
        case .scope: return Self.access(bytes) != nil
        case .redirectURI:
            return GrantsFuzzScene.realm?.clients.values.contains { $0.mayRedirect(to: text) } ?? false
        }
    }

    private static func formBody(_ bytes: [UInt8]) -> String? {
        guard let form = try? FormParameters(parsing: bytes) else { return nil }
        var count = 0
        var resources: [String] = []
        for pair in bytes.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            // Foundation's reader of escapes; a plus is a blank before it is one. A byte may be escaped or not, also in
            // the middle of a character, and Foundation reads texts: so each byte that is not ASCII is escaped here.
            let decoded = parts.map { part in
                part.map { byte in
                    switch byte {
                    case UInt8(ascii: "+"): " "
                    case 0x80...: "%" + String(byte, radix: 16)
                    default: String(UnicodeScalar(byte))
                    }
                }.joined().removingPercentEncoding
            }
            guard let name = decoded[0], let value = decoded.count > 1 ? decoded[1] : "" else {
                return "accepted what Foundation cannot decode"
            }
            guard !name.utf8.contains(0), !value.utf8.contains(0) else { return "accepted NUL" }
            if name == "resource" {
                if !value.isEmpty { resources.append(value) }
            } else {
                guard form[name] ?? "" == value else { return "another value than Foundation's" }
                if !value.isEmpty { count += 1 }
            }
        }
        return form.count == count && form.resources == resources ? nil : "another number of values"
    }

    private static func compactJWS(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let jws = RegisteredJWS(text) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { part in
            let plain = part.replacing("-", with: "+").replacing("_", with: "/")
            return Data(base64Encoded: plain + String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4))
        }
        guard parts.count == 3, let header = parts[0], let payload = parts[1], parts[2]?.isEmpty == false else {
            return "Foundation reads no three parts"
        }
        guard let object = try? JSONSerialization.jsonObject(with: header) as? [String: Any] else {
            return "Foundation reads no header"
        }
        guard object["crit"] == nil, object["b64"] == nil else { return "an extension was accepted" }
        guard Array(payload) == jws.payload, object["alg"] as? String == jws.algorithm.rawValue,
            object["kid"] as? String == jws.kid, object["typ"] as? String == jws.typ
        else { return "what was read is not what Foundation reads" }
        return jws.isSigned(by: []) ? "signed by no key" : nil
    }

    private static func emailAddress(_ bytes: [UInt8]) -> String? {
        guard let address = EmailAddress(String(decoding: bytes, as: UTF8.self)) else { return nil }
        let text = address.text
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), text.utf8.count <= EmailAddress.maximumLength,
            !text.contains(where: { "\"<>()[],;:\\".contains($0) }), text.utf8.count(where: { $0 == 0x40 }) == 1,
            !text.hasPrefix("-")
        else { return "a text that a mail server may read in another way" }
        guard address.key == text.lowercased() else { return "another key" }
        return EmailAddress(text) == address && EmailAddress(address.key)?.key == address.key ? nil : "read once only"
    }

    private static let regions = [nil, "DE", "US", "GB", "AQ", "ZZ", ""]

    private static func number(_ bytes: [UInt8]) -> PhoneNumber? {
        guard let first = bytes.first else { return nil }
        return PhoneNumber(
            typed: String(decoding: bytes.dropFirst(), as: UTF8.self),
            defaultRegion: regions[Int(first) % regions.count])
    }

    private static func phoneNumber(_ bytes: [UInt8]) -> String? {
        guard let number = number(bytes) else { return nil }
        guard number.text.wholeMatch(of: /\+[1-9][0-9]{6,14}/) != nil else { return "not E.164" }
        return PhoneNumber(e164: number.text) == number ? nil : "another number when it is read again"
    }

    private static func access(_ bytes: [UInt8]) -> RequestedAccess? {
        guard let realm = GrantsFuzzScene.realm, let client = realm.clients["app"],
            let form = try? FormParameters(parsing: bytes)
        else { return nil }
        return try? RequestedAccess(form, realm: realm, client: client)
    }

    private static func scope(_ bytes: [UInt8]) -> String? {
        guard let access = access(bytes), let realm = GrantsFuzzScene.realm, let client = realm.clients["app"],
            let form = try? FormParameters(parsing: bytes)
        else { return nil }
        let wanted = (form["scope"] ?? "").split(separator: " ").map(String.init)
        guard Set(access.scope) == Set(wanted), Set(access.scope).count == access.scope.count else {
            return "another scope than asked for"
        }
        guard access.scope.allSatisfy({ realm.scopes[$0] != nil && client.mayRequest(scope: $0) }) else {
            return "a scope that the client may not have"
        }
        guard let audience = try? access.audience(of: access.scope, realm: realm, client: client) else { return nil }
        let allowed = access.scope.flatMap { realm.scopes[$0]?.resources ?? [] }
        return !audience.isEmpty && audience.allSatisfy { allowed.contains($0) || $0 == client.clientID }
            ? nil : "an audience that no scope has"
    }

    private static func redirectURI(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let realm = GrantsFuzzScene.realm, let app = realm.clients["app"], let api = realm.clients["api"] else {
            return "no scene"
        }
        // Byte for byte: Swift's equality of texts is that of Unicode.
        let isRegistered = GrantsFuzzScene.redirectURIs.contains { $0.utf8.elementsEqual(text.utf8) }
        guard api.mayRedirect(to: text) == isRegistered else { return "a confidential client's URI was not exact" }
        guard app.mayRedirect(to: text), !isRegistered else { return nil }
        guard let url = URLComponents(string: text), url.scheme == "http", let host = url.host,
            ["127.0.0.1", "[::1]", "localhost"].contains(host), url.user == nil, url.password == nil,
            url.query == nil, url.fragment == nil
        else { return "not a loopback URI for Foundation" }
        let same = GrantsFuzzScene.redirectURIs.compactMap(URLComponents.init).contains {
            $0.scheme == "http" && $0.host == host
                && $0.percentEncodedPath.utf8.elementsEqual(url.percentEncodedPath.utf8)
        }
        return same ? nil : "another path or host than registered"
    }
}
