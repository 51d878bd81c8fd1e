import CLibPQ

/// The columns that a ``FunctionCall`` reads, in the order in which the statement asks for them.
struct Columns {
    /// One of them, for the statement's text and for comparison with the catalogue.
    struct Declared: Sendable {
        /// `nil` for the value of a function that returns no record.
        let name: String?
        /// What is read in place of the function's column of that name.
        let sql: String?
        /// The types that can be read.
        let types: Set<Oid>
        /// The words that can be read of an enumeration; `nil`: it is read as something else.
        let labels: [String]?
        /// The column of a composite type whose attribute it is.
        var composite: String?

        /// A column that is read as `Value`.
        init<Value: ColumnValue>(_ name: String?, sql: String? = nil, as _: Value.Type) {
            self.name = name
            self.sql = sql
            types = Value.types
            labels = Value.labels
        }

        /// An attribute of a column of a composite type.
        init(_ attribute: Declared, of column: String) {
            let name = attribute.name ?? ""
            self.name = "\(column)_\(name)"
            sql = "(\(column)).\(name)"
            types = attribute.types
            labels = attribute.labels
            composite = column
        }
    }

    private(set) var declared: [Declared] = []

    /// Asks for a column. - Parameter sql: an expression of the function's columns, when it is not simply one of them.
    mutating func callAsFunction<Value: ColumnValue>(
        _ name: String, _: Value.Type, sql: String? = nil
    ) -> Column<Value> {
        Column(index: place(of: Declared(name, sql: sql, as: Value.self)))
    }

    /// Asks for all columns of a record.
    ///
    /// `read` runs once at this moment, without a row, which tells the names of the columns. So it must read
    /// the same columns in the same order for all values.
    mutating func record<Value>(_ read: @escaping RecordDecoder<Value>) -> RowDecoder<Value> {
        var blank = RecordReader()
        _ = try? read(&blank)
        let places = blank.asked.map { (name: $0.name ?? "", index: place(of: $0)) }
        return { (row) throws(StoreError) in
            var record = RecordReader(row, places)
            return try read(&record)
        }
    }

    /// Asks for the attributes of a column of a composite type. `read` runs as that of ``record(_:)``; the first
    /// attribute that it reads is never NULL.
    /// - Returns: reads `nil` where the column is NULL.
    mutating func composite<Value>(_ column: String, _ read: @escaping RecordDecoder<Value>) -> RowDecoder<Value?> {
        var blank = RecordReader()
        _ = try? read(&blank)
        let places = blank.asked.map { (name: $0.name ?? "", index: place(of: Declared($0, of: column))) }
        return { (row) throws(StoreError) in
            guard let first = places.first, try !row.isNull(first.index) else { return nil }
            var record = RecordReader(row, places)
            return try read(&record)
        }
    }

    private mutating func place(of column: Declared) -> Int {
        if let place = declared.firstIndex(where: { $0.name == column.name }) { return place }
        declared.append(column)
        return declared.count - 1
    }
}

/// Reads the columns of a record one after another, by name; the index of each was found beforehand.
struct RecordReader: ~Copyable {
    private let row: (result: OpaquePointer, index: Int32, columnCount: Int32)?
    private let places: [(name: String, index: Int)]
    private var next = 0
    /// What was asked of a reader without a row.
    fileprivate var asked: [Columns.Declared] = []

    fileprivate init() {
        row = nil
        places = []
    }

    fileprivate init(_ row: borrowing Row, _ places: [(name: String, index: Int)]) {
        self.row = (row.result, row.index, Int32(row.columnCount))
        self.places = places
    }

    /// The value of a column. - Parameter sql: as for ``Columns``.
    mutating func callAsFunction<Value: ColumnValue>(
        _ name: String, sql: String? = nil
    ) throws(StoreError) -> Value {
        guard let row else {
            asked.append(Columns.Declared(name, sql: sql, as: Value.self))
            return Value.blank
        }
        guard next < places.count, places[next].name == name else { throw .malformedResult }
        let column = Column<Value>(index: places[next].index)
        next += 1
        return try Row(row.result, index: row.index, columnCount: row.columnCount)[column]
    }
}

/// A column that was asked for: its place in the row, and what it is read as.
struct Column<Value: ColumnValue>: Sendable {
    let index: Int
}

extension Row {
    /// The value of a column that was asked for.
    subscript<Value: ColumnValue>(column: Column<Value>) -> Value {
        get throws(StoreError) {
            guard let value = try Value.read(self, column.index) else { throw .malformedResult }
            return value
        }
    }
}

/// What a column can be read as. An optional is read from a column that may be NULL.
protocol ColumnValue: Sendable {
    /// The types of PostgreSQL that are read as this.
    static var types: Set<Oid> { get }
    /// The words of an enumeration; `nil` for any other type.
    static var labels: [String]? { get }
    /// Any value, read where there is no row.
    static var blank: Self { get }
    /// `nil` for NULL.
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Self?
}

extension ColumnValue {
    static var labels: [String]? { nil }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
    static var types: Set<Oid> { Wrapped.types }
    static var labels: [String]? { Wrapped.labels }
    static var blank: Self { nil }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Wrapped?? {
        .some(try Wrapped.read(row, column))
    }
}
extension UUIDValue: ColumnValue {
    static var types: Set<Oid> { [TypeOID.uuid] }
    static var blank: UUIDValue { .random() }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> UUIDValue? { try row.uuidOrNil(column) }
}
extension String: ColumnValue {
    static var types: Set<Oid> {
        [TypeOID.text, TypeOID.varchar, TypeOID.bpchar, TypeOID.name, TypeOID.json, TypeOID.jsonb]
    }
    static var blank: String { "" }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> String? { try row.textOrNil(column) }
}
extension Bool: ColumnValue {
    static var types: Set<Oid> { [TypeOID.bool] }
    static var blank: Bool { false }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Bool? { try row.boolOrNil(column) }
}
extension Int: ColumnValue {
    static var types: Set<Oid> { Int64.types }
    static var blank: Int { 0 }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Int? {
        try row.bigintOrNil(column).map { Int($0) }
    }
}
extension Int32: ColumnValue {
    static var types: Set<Oid> { [TypeOID.int2, TypeOID.int4] }
    static var blank: Int32 { 0 }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Int32? { try row.intOrNil(column) }
}
extension Int64: ColumnValue {
    static var types: Set<Oid> { [TypeOID.int2, TypeOID.int4, TypeOID.int8] }
    static var blank: Int64 { 0 }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Int64? { try row.bigintOrNil(column) }
}
extension UInt32: ColumnValue {
    static var types: Set<Oid> { [TypeOID.int8] }
    static var blank: UInt32 { 0 }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> UInt32? {
        guard let wide = try row.bigintOrNil(column) else { return nil }
        return try row.some(UInt32(exactly: wide))
    }
}
extension Double: ColumnValue {
    static var types: Set<Oid> { [TypeOID.float4, TypeOID.float8] }
    static var blank: Double { 0 }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Double? { try row.doubleOrNil(column) }
}
extension Array: ColumnValue where Element: ColumnElement {
    static var types: Set<Oid> { Element.arrayTypes }
    static var labels: [String]? { Element.elementLabels }
    static var blank: Self { [] }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [Element]? {
        try Element.readArray(row, column)
    }
}

/// An enumeration is read from its word, whether the database has the same enumeration or a text; a word that it does
/// not know is a malformed result.
extension ColumnValue where Self: RawRepresentable & CaseIterable, RawValue == String {
    static var types: Set<Oid> { String.types }
    static var labels: [String]? { allCases.map(\.rawValue) }
    static var blank: Self { allCases[allCases.startIndex] }
    static func read(_ row: borrowing Row, _ column: Int) throws(StoreError) -> Self? {
        guard let word = try row.wordOrNil(column) else { return nil }
        return try row.some(Self(rawValue: word))
    }
}

/// What an array can be read of; bytes are `bytea`.
protocol ColumnElement: Sendable {
    /// The types of PostgreSQL that are read as an array of this.
    static var arrayTypes: Set<Oid> { get }
    /// The words of an enumeration; `nil` for any other type.
    static var elementLabels: [String]? { get }
    /// `nil` for NULL.
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [Self]?
}

extension ColumnElement {
    static var elementLabels: [String]? { nil }
}

/// Read as ``ColumnValue`` is.
extension ColumnElement where Self: RawRepresentable & CaseIterable, RawValue == String {
    static var arrayTypes: Set<Oid> { String.arrayTypes }
    static var elementLabels: [String]? { allCases.map(\.rawValue) }
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [Self]? {
        guard let words = try row.wordsOrNil(column) else { return nil }
        return try words.map { (word) throws(StoreError) in try row.some(Self(rawValue: word)) }
    }
}

extension UInt8: ColumnElement {
    static var arrayTypes: Set<Oid> { [TypeOID.bytea] }
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [UInt8]? {
        try row.bytesOrNil(column)
    }
}
extension Int32: ColumnElement {
    static var arrayTypes: Set<Oid> { [TypeOID.int4Array] }
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [Int32]? {
        try row.intsOrNil(column)
    }
}
extension String: ColumnElement {
    static var arrayTypes: Set<Oid> { [TypeOID.textArray, TypeOID.varcharArray, TypeOID.nameArray] }
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [String]? {
        try row.textsOrNil(column)
    }
}
extension Array: ColumnElement where Element == UInt8 {
    static var arrayTypes: Set<Oid> { [TypeOID.byteaArray] }
    static func readArray(_ row: borrowing Row, _ column: Int) throws(StoreError) -> [[UInt8]]? {
        try row.isNull(column) ? nil : row.byteArrays(column)
    }
}
