import Crypto
import Foundation
import HTTPTypes

/// Text on its way into HTML.
public enum HTMLText {
    /// The source expression of a style or script (CSP Level 3 §2.3.1).
    public static func hash(_ text: String) -> String {
        "sha256-" + Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString()
    }

    /// Safe as text and inside a quoted attribute. By scalar: a combining mark after it must not hide a `<` or a quote.
    public static func escape(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
    }
}

extension Answer {
    /// A page with its content security policy.
    public init(html: String, policy: [String]) {
        self.init(
            .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .contentSecurityPolicy: policy.joined(separator: "; "),
            ])
        body = Array(html.utf8)
    }
}
