// What the pages and examples use of SwiftUI, as declared there, without anything behind it.
@_exported import Foundation
@_exported import Observation

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View { public var body: Never { fatalError() } }
extension Optional: View where Wrapped: View { public var body: Never { fatalError() } }

/// Stands for every view and every modified view that needs no type of its own.
public struct Some: View { public var body: Never { fatalError() } }

@resultBuilder
public struct ViewBuilder {
    public static func buildBlock() -> Some { Some() }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> Some { Some() }
    public static func buildEither<Content: View>(first: Content) -> Some { Some() }
    public static func buildEither<Content: View>(second: Content) -> Some { Some() }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
}

public struct Text: View {
    public init(_ text: String) {}
    public var body: Never { fatalError() }
}
public struct ProgressView: View {
    public init() {}
    public var body: Never { fatalError() }
}
public struct Form<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct List<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct Group<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct Section<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public init(_ title: String, @ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct NavigationStack<Content: View>: View {
    public init(@ViewBuilder root: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct ForEach<Data: RandomAccessCollection, Content: View>: View where Data.Element: Identifiable {
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {}
    public var body: Never { fatalError() }
}
public struct LabeledContent: View {
    public init(_ title: String, value: String) {}
    public var body: Never { fatalError() }
}
public struct TextField: View {
    public init(_ title: String, text: Binding<String>) {}
    public var body: Never { fatalError() }
}
public struct ButtonRole: Sendable {
    public static let destructive = ButtonRole()
    public static let cancel = ButtonRole()
}
public struct Button: View {
    public init(_ title: String, action: @escaping @MainActor () -> Void) {}
    public init(_ title: String, role: ButtonRole?, action: @escaping @MainActor () -> Void) {}
    public var body: Never { fatalError() }
}

public struct UITextContentType: Sendable {
    public static let username = UITextContentType()
    public static let oneTimeCode = UITextContentType()
}
public enum UIKeyboardType: Sendable { case emailAddress, numberPad }
public struct TextInputAutocapitalization: Sendable { public static var never: TextInputAutocapitalization { fatalError() } }
public struct Color: Sendable { public static let red = Color() }
public struct Font: Sendable { public static let largeTitle = Font() }

extension View {
    public func textContentType(_ type: UITextContentType?) -> some View { Some() }
    public func keyboardType(_ type: UIKeyboardType) -> some View { Some() }
    public func textInputAutocapitalization(_ style: TextInputAutocapitalization?) -> some View { Some() }
    public func foregroundStyle(_ color: Color) -> some View { Some() }
    public func font(_ font: Font?) -> some View { Some() }
    public func disabled(_ disabled: Bool) -> some View { Some() }
    public func navigationTitle(_ title: String) -> some View { Some() }
    public func onOpenURL(perform action: @escaping (URL) -> Void) -> some View { Some() }
    public func task(_ action: sending @escaping @isolated(any) () async -> Void) -> some View { Some() }
    public func task<ID: Equatable>(id: ID, _ action: sending @escaping @isolated(any) () async -> Void) -> some View { Some() }
    public func refreshable(action: @escaping @Sendable () async -> Void) -> some View { Some() }
    public func sheet<Content: View>(isPresented: Binding<Bool>, @ViewBuilder content: @escaping () -> Content) -> some View { Some() }
    public func swipeActions<Content: View>(@ViewBuilder content: () -> Content) -> some View { Some() }
}

@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set {}
    }
    public var projectedValue: Binding<Value> { fatalError() }
}
@propertyWrapper public struct Binding<Value> {
    public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {}
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set {}
    }
    public var projectedValue: Binding<Value> { self }
}

@propertyWrapper @dynamicMemberLookup public struct Bindable<Value: AnyObject & Observable> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public var wrappedValue: Value
    public var projectedValue: Bindable<Value> { self }
    public subscript<Member>(dynamicMember path: ReferenceWritableKeyPath<Value, Member>) -> Binding<Member> { fatalError() }
}

@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}
extension Never: Scene {}
@resultBuilder public struct SceneBuilder { public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content } }
public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App { public static func main() {} }
