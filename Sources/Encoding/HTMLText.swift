/// Text on its way into HTML.
public enum HTMLText {
    /// Safe as text and inside a quoted attribute. By scalar: a combining mark after it must not hide a `<` or a quote.
    public static func escape(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
    }
}
