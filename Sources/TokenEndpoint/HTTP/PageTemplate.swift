import Encoding
import Crypto
import Foundation
import HTTPTypes

/// A page of the binary: text with `{{name}}` for a value, which is escaped, and `{{{name}}}` for trusted text, which
/// is not.
public struct PageTemplate: Sendable {
    private enum Piece: Sendable {
        case text(String)
        case value(String)
    }

    private let pieces: [Piece]
    private let policy: String

    /// Reads a template and puts its style sheet in place.
    ///
    /// The page's policy allows that style by its hash and forms to the page's own origin, and nothing else.
    init(_ name: String, style: String) {
        let css = Self.embedded(style)
        var pieces: [Piece] = []
        var rest = Self.embedded(name).replacingOccurrences(of: "{{{style}}}", with: css)[...]
        while let open = rest.range(of: "{{"), let close = rest[open.upperBound...].range(of: "}}") {
            pieces.append(.text(String(rest[..<open.lowerBound])))
            pieces.append(.value(String(rest[open.upperBound..<close.lowerBound])))
            rest = rest[close.upperBound...]
        }
        self.pieces = pieces + [.text(String(rest))]
        policy = [
            "default-src 'none'", "style-src '\(Self.hash(css))'", "img-src data:", "form-action 'self'",
            "base-uri 'none'", "frame-ancestors 'none'",
        ].joined(separator: "; ")
    }

    /// The page with its values.
    func answer(_ values: [String: String], status: HTTPResponse.Status = .ok) -> Answer {
        let html = pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .value(let name): HTMLText.escape(values[name] ?? "")
            }
        }
        var answer = Answer(status)
        answer.headers = [
            .contentType: "text/html; charset=utf-8", .contentSecurityPolicy: policy, .referrerPolicy: "no-referrer",
            .xRobotsTag: "noindex",
        ]
        answer.body = Array(html.joined().utf8)
        return answer
    }

    /// The source expression of a style or script (CSP Level 3 §2.3.1).
    public static func hash(_ text: String) -> String {
        "sha256-" + Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString()
    }

    private static func embedded(_ name: String) -> String {
        Embedded.templates.first { $0.name == name }?.text ?? ""
    }
}
