/// A declared argument of a ``FunctionCall``. Written as a literal, it takes one value of its own name.
struct Argument: Sendable, ExpressibleByStringLiteral {
    /// Without the `p_` that the arguments of our functions begin with.
    let name: StaticString
    /// Names of the values that it is made from.
    let values: [StaticString]
    /// Whether the statement calls the function once for each element of an array of values.
    let isItem: Bool
    /// Of a composite value: its type and its attributes, in their order.
    private(set) var row: (type: StaticString, attributes: [Argument])?
    /// The SQL of the argument, given the SQL of its values.
    private let sql: @Sendable ([String]) -> String

    /// An argument that is made of several values.
    init(
        _ name: StaticString, of values: [StaticString], isItem: Bool = false,
        sql: @escaping @Sendable ([String]) -> String
    ) {
        self.name = name
        self.values = values
        self.isItem = isItem
        self.sql = sql
    }

    /// One value of the same name.
    init(stringLiteral name: StaticString) {
        self.init(name, of: [name]) { $0[0] }
    }

    /// One element of an array of values of the same name; the function is called for each of them.
    static func item(_ name: StaticString, sql: @escaping @Sendable (String) -> String = { $0 }) -> Argument {
        Argument(name, of: [name], isItem: true) { sql($0[0]) }
    }

    /// A composite value of the schema `postern`. - Parameter type: named as the argument, unless given.
    static func row(
        _ name: StaticString, as type: StaticString? = nil, _ attributes: [Argument]
    ) -> Argument {
        let type = type ?? name
        var argument = Argument(name, of: attributes.flatMap(\.values)) { places in
            var rest = places[...]
            let members = attributes.map { attribute in
                let own = Array(rest.prefix(attribute.values.count))
                rest = rest.dropFirst(own.count)
                return attribute.sql(own)
            }
            return "ROW(\(members.joined(separator: ", ")))::postern.\(type)"
        }
        argument.row = (type, attributes)
        return argument
    }

    /// One value of another name.
    static func value(_ name: StaticString, from value: StaticString) -> Argument {
        Argument(name, of: [value]) { $0[0] }
    }

    /// Always the same.
    static func constant(_ name: StaticString, _ sql: String) -> Argument {
        Argument(name, of: []) { _ in sql }
    }

    /// The text of a call, and the names of its values in the order of their numbers. A value that two arguments are
    /// made from is bound once.
    ///
    /// A call for each item reads
    /// `unnest($2, $3) WITH ORDINALITY AS item (in_a, in_b, number), postern.f(p_realm => $1, p_a => item.in_a, …)`.
    static func call(of function: String, _ arguments: [Argument]) -> (sql: String, parameters: [StaticString]) {
        var parameters: [StaticString] = []
        var items: [(name: StaticString, place: String)] = []
        let list = arguments.map { argument in
            let places = argument.values.map { value in
                if !argument.isItem, let place = parameters.firstIndex(where: { $0.isSame(as: value) }) {
                    return "$\(place + 1)"
                }
                parameters.append(value)
                guard argument.isItem else { return "$\(parameters.count)" }
                items.append((value, "$\(parameters.count)"))
                return "item.in_\(value)"
            }
            return "p_\(argument.name) => \(argument.sql(places))"
        }
        let call = "postern.\(function)(\(list.joined(separator: ", ")))"
        guard !items.isEmpty else { return (call, parameters) }
        let arrays = items.map(\.place).joined(separator: ", ")
        // Apart from the names of the function's own columns.
        let names = items.map { "in_\($0.name)" }.joined(separator: ", ")
        return ("unnest(\(arrays)) WITH ORDINALITY AS item (\(names), number), \(call)", parameters)
    }
}

/// Values for a ``FunctionCall``, each under the name of its argument: `["realm": realm, "id": id]`.
///
/// Names and values lie apart, because an array of plain names is copied as bytes.
struct Arguments: Sendable, ExpressibleByDictionaryLiteral {
    private(set) var names: [StaticString]
    private(set) var values: [Parameter]

    init(dictionaryLiteral elements: (StaticString, any ArgumentValue)...) {
        names = []
        values = []
        // Most calls join two or three literals.
        names.reserveCapacity(elements.count + Self.room)
        values.reserveCapacity(elements.count + Self.room)
        for element in elements {
            names.append(element.0)
            values.append(element.1.parameter)
        }
    }

    private static let room = 12

    /// Both.
    static func + (left: consuming Arguments, right: Arguments) -> Arguments {
        left.names += right.names
        left.values += right.values
        return left
    }
}

extension StaticString {
    /// Whether both are the same text; the same literal usually lies at the same place.
    func isSame(as other: StaticString) -> Bool {
        guard utf8CodeUnitCount == other.utf8CodeUnitCount else { return false }
        return utf8Start == other.utf8Start
            || UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
                .elementsEqual(UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
    }
}

/// What can be bound to an argument of a function.
protocol ArgumentValue {
    /// The value in PostgreSQL's type.
    var parameter: Parameter { get }
}

extension Parameter: ArgumentValue {
    var parameter: Parameter { self }
}
extension UUIDValue: ArgumentValue {
    var parameter: Parameter { .uuid(self) }
}
extension String: ArgumentValue {
    var parameter: Parameter { .text(self) }
}
extension Bool: ArgumentValue {
    var parameter: Parameter { .bool(self) }
}
extension Int32: ArgumentValue {
    var parameter: Parameter { .int(self) }
}
extension Int64: ArgumentValue {
    var parameter: Parameter { .bigint(self) }
}
extension UInt32: ArgumentValue {
    var parameter: Parameter { .bigint(Int64(self)) }
}
extension Double: ArgumentValue {
    var parameter: Parameter { .double(self) }
}
extension Duration: ArgumentValue {
    var parameter: Parameter { .interval(self) }
}
/// An enumeration is bound as its word.
extension ArgumentValue where Self: RawRepresentable, RawValue == String {
    var parameter: Parameter { .word(rawValue) }
}
extension Optional: ArgumentValue where Wrapped: ArgumentValue {
    var parameter: Parameter { self?.parameter ?? .null }
}
extension Array: ArgumentValue where Element: ArgumentElement {
    var parameter: Parameter { Element.parameter(self) }
}

/// What an array can be bound of; bytes are `bytea`.
protocol ArgumentElement {
    static func parameter(_ array: [Self]) -> Parameter
}

extension UInt8: ArgumentElement {
    static func parameter(_ array: [UInt8]) -> Parameter { .bytes(array) }
}
extension Int32: ArgumentElement {
    static func parameter(_ array: [Int32]) -> Parameter { .ints(array) }
}
extension Int64: ArgumentElement {
    static func parameter(_ array: [Int64]) -> Parameter { .bigints(array) }
}
extension Double: ArgumentElement {
    static func parameter(_ array: [Double]) -> Parameter { .doubles(array) }
}
extension String: ArgumentElement {
    static func parameter(_ array: [String]) -> Parameter { .texts(array) }
}
extension UUIDValue: ArgumentElement {
    static func parameter(_ array: [UUIDValue]) -> Parameter { .uuids(array) }
}
extension Array: ArgumentElement where Element == UInt8 {
    static func parameter(_ array: [[UInt8]]) -> Parameter { .byteArrays(array) }
}
