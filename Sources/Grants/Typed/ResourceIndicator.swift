/// URIs of resource servers (RFC 8707), as clients and administrators spell them.
public enum ResourceIndicator {
    /// Whether two URIs name one resource: an empty path is `/` (RFC 3986 §6.2.3), as URL libraries write it. Nothing
    /// else is folded.
    public static func areEqual(_ one: String, _ other: String) -> Bool {
        one == other || key(of: one) == key(of: other)
    }

    /// The URI with the path written out.
    private static func key(of uri: String) -> String {
        guard let mark = uri.firstRange(of: "://"), mark.upperBound < uri.endIndex else { return uri }
        let end = uri[mark.upperBound...].firstIndex { "/?#".contains($0) } ?? uri.endIndex
        guard end > mark.upperBound, end == uri.endIndex || uri[end] != "/" else { return uri }
        return uri[..<end] + "/" + uri[end...]
    }
}
