import CLibPQ

/// One row of a result, decoded straight from libpq's memory.
///
/// Every accessor checks the column's existence, type and length and throws ``StoreError/malformedResult`` when one is
/// not as expected: nothing that a server can send traps. A row is lent to the decoder and cannot outlive it.
public struct Row: ~Copyable {
    let result: OpaquePointer
    let index: Int32
    /// The number of columns.
    public let columnCount: Int

    init(_ result: OpaquePointer, index: Int32, columnCount: Int32) {
        self.result = result
        self.index = index
        self.columnCount = Int(columnCount)
    }

    /// Whether the column is NULL.
    public borrowing func isNull(_ column: Int) throws(StoreError) -> Bool {
        PQgetisnull(result, index, try checked(column)) != 0
    }

    /// `uuid`.
    public borrowing func uuid(_ column: Int) throws(StoreError) -> UUIDValue { try some(uuidOrNil(column)) }
    /// `uuid` or NULL.
    public borrowing func uuidOrNil(_ column: Int) throws(StoreError) -> UUIDValue? {
        guard let value = try value(column) else { return nil }
        guard value.type == TypeOID.uuid, let uuid = UUIDValue(value.memory) else { throw .malformedResult }
        return uuid
    }

    /// `text`, `varchar`, `name`, `json` or `jsonb`.
    public borrowing func text(_ column: Int) throws(StoreError) -> String { try some(textOrNil(column)) }
    /// `text`, `varchar`, `name`, `json`, `jsonb` or NULL.
    public borrowing func textOrNil(_ column: Int) throws(StoreError) -> String? {
        guard let value = try value(column) else { return nil }
        switch value.type {
        case TypeOID.text, TypeOID.varchar, TypeOID.bpchar, TypeOID.name, TypeOID.json, TypeOID.unknown:
            return try Self.text(value.memory)
        case TypeOID.jsonb:  // a version byte precedes the text (jsonb_send)
            guard value.memory.first == 1 else { throw .malformedResult }
            return try Self.text(UnsafeRawBufferPointer(rebasing: value.memory.dropFirst()))
        default: throw .malformedResult
        }
    }

    /// A word of an enumeration of the schema, a text, or NULL.
    borrowing func wordOrNil(_ column: Int) throws(StoreError) -> String? {
        guard let value = try value(column) else { return nil }
        return value.type >= TypeOID.firstOfSchemas ? try Self.text(value.memory) : try textOrNil(column)
    }

    /// `bytea`.
    public borrowing func bytes(_ column: Int) throws(StoreError) -> [UInt8] { try some(bytesOrNil(column)) }
    /// `bytea` or NULL.
    public borrowing func bytesOrNil(_ column: Int) throws(StoreError) -> [UInt8]? {
        guard let value = try value(column) else { return nil }
        guard value.type == TypeOID.bytea else { throw .malformedResult }
        return Array(value.memory)
    }

    /// `smallint` or `integer`.
    public borrowing func int(_ column: Int) throws(StoreError) -> Int32 { try some(intOrNil(column)) }
    /// `smallint`, `integer` or NULL.
    public borrowing func intOrNil(_ column: Int) throws(StoreError) -> Int32? {
        guard let wide = try bigintOrNil(column) else { return nil }
        guard let value = Int32(exactly: wide) else { throw .malformedResult }
        return value
    }

    /// `smallint`, `integer` or `bigint`.
    public borrowing func bigint(_ column: Int) throws(StoreError) -> Int64 { try some(bigintOrNil(column)) }
    /// `smallint`, `integer`, `bigint` or NULL.
    public borrowing func bigintOrNil(_ column: Int) throws(StoreError) -> Int64? {
        guard let value = try value(column) else { return nil }
        switch value.type {
        case TypeOID.int8: return try Self.integer(value.memory, as: Int64.self)
        case TypeOID.int4: return Int64(try Self.integer(value.memory, as: Int32.self))
        case TypeOID.int2: return Int64(try Self.integer(value.memory, as: Int16.self))
        default: throw .malformedResult
        }
    }

    /// `real` or `double precision`.
    public borrowing func double(_ column: Int) throws(StoreError) -> Double { try some(doubleOrNil(column)) }
    /// `real`, `double precision` or NULL.
    public borrowing func doubleOrNil(_ column: Int) throws(StoreError) -> Double? {
        guard let value = try value(column) else { return nil }
        switch value.type {
        case TypeOID.float8: return Double(bitPattern: try Self.integer(value.memory, as: UInt64.self))
        case TypeOID.float4: return Double(Float(bitPattern: try Self.integer(value.memory, as: UInt32.self)))
        default: throw .malformedResult
        }
    }

    /// `boolean`.
    public borrowing func bool(_ column: Int) throws(StoreError) -> Bool { try some(boolOrNil(column)) }
    /// `boolean` or NULL.
    public borrowing func boolOrNil(_ column: Int) throws(StoreError) -> Bool? {
        guard let value = try value(column) else { return nil }
        guard value.type == TypeOID.bool, value.memory.count == 1 else { throw .malformedResult }
        return value.memory[0] != 0
    }

    /// The bytes of a column with its type, `nil` for NULL.
    borrowing func value(_ column: Int) throws(StoreError) -> (type: Oid, memory: UnsafeRawBufferPointer)? {
        let column = try checked(column)
        if PQgetisnull(result, index, column) != 0 { return nil }
        // libpq returns a text-format value when the server ignores the wish for binary: never guess at it.
        guard PQfformat(result, column) == 1, let start = PQgetvalue(result, index, column) else {
            throw .malformedResult
        }
        let count = Int(PQgetlength(result, index, column))
        return (PQftype(result, column), UnsafeRawBufferPointer(start: start, count: count))
    }

    private borrowing func checked(_ column: Int) throws(StoreError) -> Int32 {
        guard column >= 0, column < columnCount else { throw .malformedResult }
        return Int32(column)
    }

    func some<Value>(_ value: Value?) throws(StoreError) -> Value {
        guard let value else { throw .malformedResult }
        return value
    }

    static func text(_ memory: UnsafeRawBufferPointer) throws(StoreError) -> String {
        guard let text = try? UTF8Span(validating: memory.assumingMemoryBound(to: UInt8.self).span) else {
            throw .malformedResult
        }
        return String(copying: text)
    }

    static func integer<Value: FixedWidthInteger>(
        _ memory: UnsafeRawBufferPointer, as type: Value.Type
    ) throws(StoreError) -> Value {
        guard memory.count == MemoryLayout<Value>.size else { throw .malformedResult }
        return Value(bigEndian: memory.loadUnaligned(as: Value.self))
    }
}
