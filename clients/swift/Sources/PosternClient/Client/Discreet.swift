/// A value that may hold secrets or personal data. Its description, `dump` and mirror show ``shown`` and nothing else, so
/// that a log or a crash report has no token, code, key or address.
public protocol Discreet: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The members that may be seen, by name.
    var shown: [(String, any Sendable)] { get }
}

extension Discreet {
    /// The type, and the members that may be seen.
    public var description: String {
        "\(Self.self)(" + shown.map { "\($0): \($1)" }.joined(separator: ", ") + ")"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Has the members that may be seen.
    public var customMirror: Mirror {
        Mirror(self, children: shown.map { (label: $0, value: $1 as Any) }, displayStyle: .struct)
    }
}
