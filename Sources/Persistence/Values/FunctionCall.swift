/// Makes a value of a row, by columns that were asked for beforehand.
typealias RowDecoder<Value> = @Sendable (borrowing Row) throws(StoreError) -> Value
/// Makes a value of a row, naming the columns.
typealias RecordDecoder<Value> = @Sendable (inout RecordReader) throws(StoreError) -> Value

/// A call of one function of the schema `postern`, by name: what is bound to which argument, and which columns are
/// read, and how.
///
/// The text is made once, from the names: `SELECT outcome, handle FROM postern.f(p_realm => $1, p_id => $2)`. Arguments
/// that have a default may be left out. A store declares its calls as members of its `Calls`; `FunctionCallTests`
/// compares all of them with the catalogue of a database.
struct FunctionCall<Result: Sendable>: Sendable {
    /// The function's name.
    let function: String
    /// What is bound.
    let arguments: [Argument]
    /// What is read.
    let columns: [Columns.Declared]
    /// What is sent.
    let statement: Statement
    /// How a row is read.
    let decode: RowDecoder<Result>
    /// Names of the values, in the order of the statement's parameters.
    private let parameters: [StaticString]

    /// A call of a function that returns a record or a table.
    /// - Parameters:
    ///   - name: of the statement, when several statements call the function.
    ///   - returns: asks for the columns, and returns how a row of them is read.
    init(
        _ function: String, named name: String? = nil, _ arguments: [Argument] = [], effect: Statement.Effect,
        payer: Statement.Payer = .realm, returns: (inout Columns) -> RowDecoder<Result>
    ) {
        var columns = Columns()
        let decode = returns(&columns)
        self.init(function, named: name, arguments, effect, payer, columns.declared, decode)
    }

    /// A call of a function all of whose rows are read alike. - Parameter record: see ``Columns/record(_:)``.
    init(
        _ function: String, _ arguments: [Argument] = [], effect: Statement.Effect, payer: Statement.Payer = .realm,
        record: @escaping RecordDecoder<Result>
    ) {
        self.init(function, arguments, effect: effect, payer: payer, returns: { $0.record(record) })
    }

    private init(
        _ function: String, named name: String?, _ arguments: [Argument], _ effect: Statement.Effect,
        _ payer: Statement.Payer, _ columns: [Columns.Declared], _ decode: @escaping RowDecoder<Result>
    ) {
        let call = Argument.call(of: function, arguments)
        let isScalar = columns.allSatisfy { $0.name == nil }
        let list = columns.compactMap { column in
            column.name.map { name in column.sql.map { "\($0) AS \(name)" } ?? name }
        }
        self.function = function
        self.arguments = arguments
        self.columns = columns
        self.decode = decode
        parameters = call.parameters
        statement = Statement(
            name: name ?? function,
            sql: isScalar ? "SELECT \(call.sql)" : "SELECT \(list.joined(separator: ", ")) FROM \(call.sql)",
            effect: effect, payer: payer)
    }

    /// The given values in the order of the statement's parameters.
    /// - Throws: ``StoreError/rejected(sqlstate:)`` unless exactly the declared arguments are given.
    func values(_ given: Arguments) throws(StoreError) -> [Parameter] {
        guard given.names.count == parameters.count else { throw Self.undeclared }
        // A store gives them in the order of the declaration.
        if given.names.indices.allSatisfy({ given.names[$0].isSame(as: parameters[$0]) }) { return given.values }
        var values: [Parameter] = []
        values.reserveCapacity(parameters.count)
        for name in parameters {
            guard let place = given.names.firstIndex(where: { $0.isSame(as: name) }) else { throw Self.undeclared }
            values.append(given.values[place])
        }
        return values
    }

    /// `undefined_parameter`, a defect of ours.
    private static var undeclared: StoreError { .rejected(sqlstate: "42P02") }
}

extension FunctionCall where Result: ColumnValue {
    /// A call of a function that returns one value.
    init(
        _ function: String, _ arguments: [Argument] = [], effect: Statement.Effect, payer: Statement.Payer = .realm
    ) {
        let value = Column<Result>(index: 0)
        self.init(function, named: nil, arguments, effect, payer, [Columns.Declared(nil, as: Result.self)]) {
            (row) throws(StoreError) in try row[value]
        }
    }
}

extension FunctionCall where Result == Void {
    /// A call of a function whose result is of no interest.
    init(_ function: String, _ arguments: [Argument], effect: Statement.Effect) {
        self.init(function, named: nil, arguments, effect, .realm, []) { _ in }
    }
}

/// A ``FunctionCall`` of any result, as its declaration is compared with the catalogue.
protocol DeclaredCall: Sendable {
    var function: String { get }
    var arguments: [Argument] { get }
    var columns: [Columns.Declared] { get }
    var statement: Statement { get }
}

extension FunctionCall: DeclaredCall {}
