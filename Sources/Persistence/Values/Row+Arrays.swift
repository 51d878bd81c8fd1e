import CLibPQ

extension Row {
    /// `text[]`, `varchar[]` or `name[]` without NULL elements.
    public borrowing func texts(_ column: Int) throws(StoreError) -> [String] { try some(textsOrNil(column)) }
    /// `text[]`, `varchar[]` or `name[]` without NULL elements, or NULL.
    public borrowing func textsOrNil(_ column: Int) throws(StoreError) -> [String]? {
        try array(column, TypeOID.textArray, TypeOID.varcharArray, TypeOID.nameArray) { (memory) throws(StoreError) in
            try Self.text(memory)
        }
    }

    /// Words of an enumeration of the schema without NULL elements, or NULL.
    borrowing func wordsOrNil(_ column: Int) throws(StoreError) -> [String]? {
        guard let type = try value(column)?.type else { return nil }
        guard type >= TypeOID.firstOfSchemas else { return try textsOrNil(column) }
        return try array(column, type) { (memory) throws(StoreError) in try Self.text(memory) }
    }

    /// `integer[]` without NULL elements.
    public borrowing func ints(_ column: Int) throws(StoreError) -> [Int32] { try some(intsOrNil(column)) }
    /// `integer[]` without NULL elements, or NULL.
    public borrowing func intsOrNil(_ column: Int) throws(StoreError) -> [Int32]? {
        try array(column, TypeOID.int4Array) { (memory) throws(StoreError) in try Self.integer(memory, as: Int32.self) }
    }

    /// `double precision[]` without NULL elements.
    public borrowing func doubles(_ column: Int) throws(StoreError) -> [Double] {
        try some(
            array(column, TypeOID.float8Array) { (memory) throws(StoreError) in
                Double(bitPattern: try Self.integer(memory, as: UInt64.self))
            })
    }

    /// `bytea[]` without NULL elements.
    public borrowing func byteArrays(_ column: Int) throws(StoreError) -> [[UInt8]] {
        try some(array(column, TypeOID.byteaArray) { (memory) throws(StoreError) in Array(memory) })
    }

    /// `uuid[]` without NULL elements.
    public borrowing func uuids(_ column: Int) throws(StoreError) -> [UUIDValue] {
        try some(
            array(column, TypeOID.uuidArray) { (memory) throws(StoreError) in
                guard let value = UUIDValue(memory) else { throw .malformedResult }
                return value
            })
    }

    /// Reads the layout of `array_send`. Refuses a declared size that does not fit the bytes.
    private borrowing func array<Element>(
        _ column: Int, _ types: Oid..., element: (UnsafeRawBufferPointer) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element]? {
        guard let value = try value(column) else { return nil }
        guard types.contains(value.type) else { throw .malformedResult }
        var rest = value.memory[...]
        func take(_ count: Int) throws(StoreError) -> UnsafeRawBufferPointer {
            guard count >= 0, count <= rest.count else { throw .malformedResult }
            defer { rest = rest.dropFirst(count) }
            return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        }
        func takeInteger() throws(StoreError) -> Int32 { try Self.integer(take(4), as: Int32.self) }

        let dimensions = try takeInteger()
        _ = try (takeInteger(), takeInteger())  // has-NULL flag, element type (fixed by the array's type)
        if dimensions == 0 { return [] }
        guard dimensions == 1 else { throw .malformedResult }
        let count = Int(try takeInteger())
        _ = try takeInteger()  // lower bound
        // Each element has at least its length: a false count cannot make us reserve more than was sent.
        guard count >= 0, count <= rest.count / 4 else { throw .malformedResult }
        var elements: [Element] = []
        elements.reserveCapacity(count)
        for _ in 0..<count { elements.append(try element(take(Int(try takeInteger())))) }
        guard rest.isEmpty else { throw .malformedResult }
        return elements
    }
}
