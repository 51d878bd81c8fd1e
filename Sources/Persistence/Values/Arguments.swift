/// A declared argument of a ``FunctionCall``. Written as a literal, it takes one value of its own name.
struct Argument: Sendable, ExpressibleByStringLiteral {
    /// Without the `p_` that the arguments of our functions begin with.
    let name: String
    /// Names of the values that it is made from.
    let values: [String]
    /// Whether the statement calls the function once for each element of an array of values.
    let isItem: Bool
    /// The SQL of the argument, given the SQL of its values.
    private let sql: @Sendable ([String]) -> String

    /// An argument that is made of several values.
    init(
        _ name: String, of values: [String], isItem: Bool = false, sql: @escaping @Sendable ([String]) -> String
    ) {
        self.name = name
        self.values = values
        self.isItem = isItem
        self.sql = sql
    }

    /// One value of the same name.
    init(stringLiteral name: String) {
        self.init(name, of: [name]) { $0[0] }
    }

    /// One element of an array of values of the same name; the function is called for each of them.
    static func item(_ name: String, sql: @escaping @Sendable (String) -> String = { $0 }) -> Argument {
        Argument(name, of: [name], isItem: true) { sql($0[0]) }
    }

    /// Always the same.
    static func constant(_ name: String, _ sql: String) -> Argument {
        Argument(name, of: []) { _ in sql }
    }

    /// The text of a call, and the names of its values in the order of their numbers.
    ///
    /// A call for each item reads `unnest($2, $3) WITH ORDINALITY AS item (a, b, number), postern.f(p_realm => $1, p_a
    /// => item.a, …)`.
    static func call(of function: String, _ arguments: [Argument]) -> (sql: String, parameters: [String]) {
        var parameters: [String] = []
        var items: [(name: String, place: String)] = []
        let list = arguments.map { argument in
            let places = argument.values.map { value in
                parameters.append(value)
                guard argument.isItem else { return "$\(parameters.count)" }
                items.append((value, "$\(parameters.count)"))
                return "item.\(value)"
            }
            return "p_\(argument.name) => \(argument.sql(places))"
        }
        let call = "postern.\(function)(\(list.joined(separator: ", ")))"
        guard !items.isEmpty else { return (call, parameters) }
        let arrays = items.map(\.place).joined(separator: ", ")
        let names = items.map(\.name).joined(separator: ", ")
        return ("unnest(\(arrays)) WITH ORDINALITY AS item (\(names), number), \(call)", parameters)
    }
}

/// Values for a ``FunctionCall``, each under the name of its argument: `["realm": realm, "id": id]`.
struct Arguments: Sendable, ExpressibleByDictionaryLiteral {
    private(set) var elements: [(name: String, value: Parameter)]

    init(dictionaryLiteral elements: (String, any ArgumentValue)...) {
        self.elements = elements.map { (name: $0.0, value: $0.1.parameter) }
    }

    /// Both.
    static func + (left: Arguments, right: Arguments) -> Arguments {
        var both = left
        both.elements += right.elements
        return both
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
