/// Why bytes are not the JSON this library reads (RFC 8259, narrowed). The cases name a rule, never the data.
public enum JSONError: Error, Equatable, Sendable, CaseIterable {
    /// Longer than the caller allows.
    case tooLong
    /// Not UTF-8.
    case invalidUTF8
    /// Something other than what the grammar wants next, a truncated document among them.
    case malformed
    /// Bytes after the document.
    case trailingBytes
    /// Deeper than eight levels.
    case tooDeep
    /// An object with more than 64 members.
    case tooManyMembers
    /// The same key twice in one object: two readers could disagree on what was said.
    case duplicateKey
    /// A value of another type than the member has.
    case unexpectedType
    /// A string that is not base64url without padding (RFC 4648 §5, §3.2), or has unused bits set.
    case invalidBase64URL
}
