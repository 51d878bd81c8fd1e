/// A value that must not be printed. Logs, failures and crash reports show only its type's name, for every way of
/// printing (`print`, `String(reflecting:)`, `dump`, the reflection of an object that holds it).
public protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// The type's name.
    public var description: String { "\(Self.self)(redacted)" }
    /// The type's name.
    public var debugDescription: String { description }
    /// No children.
    public var customMirror: Mirror { Mirror(self, children: [] as [Mirror.Child]) }
}
