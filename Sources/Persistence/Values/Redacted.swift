/// A value that must not be printed: logs, failures and crash reports show its type's name, whatever prints it
/// (`print`, `String(reflecting:)`, `dump`, the reflection of an object that holds it).
public protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// The type's name.
    public var description: String { "\(Self.self)(redacted)" }
    /// The type's name.
    public var debugDescription: String { description }
    /// No children.
    public var customMirror: Mirror { Mirror(self, children: [] as [Mirror.Child]) }
}
