import CLibPQ

/// The parameters of one statement in PostgreSQL's binary format. Kept per connection, so that encoding allocates
/// nothing once the buffer has grown.
struct ParameterBuffer {
    private(set) var types: [Oid] = []
    private var bytes: [UInt8] = []
    private var ranges: [(start: Int, count: Int)?] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// Replaces the content. - Throws: `.rejected` (22021) for text with a NUL, (54000) for a value beyond 1 GiB.
    mutating func encode(_ parameters: [Parameter]) throws(StoreError) {
        types.removeAll(keepingCapacity: true)
        // One huge value must not occupy memory for the life of the connection.
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 16)
        ranges.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        formats.removeAll(keepingCapacity: true)
        for parameter in parameters {
            let start = bytes.count
            let type = try append(parameter)
            let count = bytes.count - start
            guard count < 1 << 30 else { throw .rejected(sqlstate: "54000") }
            types.append(type)
            if case .null = parameter { ranges.append(nil) } else { ranges.append((start, count)) }
            lengths.append(Int32(count))
            // An untyped value is sent as text, which the server parses as the type it inferred for the parameter.
            let isText = type == TypeOID.unspecified
            if isText { bytes.append(0) }
            formats.append(isText ? 0 : 1)
        }
        bytes.append(0)  // an empty value needs an address too: libpq takes none for NULL
    }

    /// Calls `body` with the arrays libpq wants; they are valid during the call only.
    mutating func withPointers<R>(
        _ body: (
            _ count: Int32, _ values: UnsafePointer<UnsafePointer<CChar>?>?, _ lengths: UnsafePointer<Int32>?,
            _ formats: UnsafePointer<Int32>?
        ) -> R
    ) -> R {
        var pointers = exchange(&self.pointers, with: [])
        pointers.removeAll(keepingCapacity: true)
        let result = bytes.withUnsafeBytes { memory in
            for range in ranges {
                let start = range.flatMap { range in memory.baseAddress.map { $0 + range.start } }
                pointers.append(start?.assumingMemoryBound(to: CChar.self))
            }
            return body(Int32(pointers.count), pointers, lengths, formats)
        }
        self.pointers = pointers
        return result
    }

    private mutating func append(_ parameter: Parameter) throws(StoreError) -> Oid {
        switch parameter {
        case .null: return TypeOID.unspecified
        case .uuid(let value):
            value.write(to: &bytes)
            return TypeOID.uuid
        case .bytes(let value):
            bytes.append(contentsOf: value)
            return TypeOID.bytea
        case .text(let value):
            try append(text: value)
            return TypeOID.text
        case .json(let value), .word(let value):
            try append(text: value)
            return TypeOID.unspecified
        case .int(let value):
            append(value)
            return TypeOID.int4
        case .bigint(let value):
            append(value)
            return TypeOID.int8
        case .double(let value):
            append(value.bitPattern)
            return TypeOID.float8
        case .bool(let value):
            bytes.append(value ? 1 : 0)
            return TypeOID.bool
        case .interval(let value):
            let (seconds, attoseconds) = value.components
            append(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
            append(0 as Int64)  // days and months
            return TypeOID.interval
        case .texts(let values):
            try appendArray(values, of: TypeOID.text) { (buffer, value) throws(StoreError) in
                try buffer.append(text: value)
            }
            return TypeOID.textArray
        case .ints(let values):
            try appendArray(values, of: TypeOID.int4) { $0.append($1) }
            return TypeOID.int4Array
        case .bigints(let values):
            try appendArray(values, of: TypeOID.int8) { $0.append($1) }
            return TypeOID.int8Array
        case .doubles(let values):
            try appendArray(values, of: TypeOID.float8) { $0.append($1.bitPattern) }
            return TypeOID.float8Array
        case .byteArrays(let values):
            try appendArray(values, of: TypeOID.bytea) { $0.bytes.append(contentsOf: $1) }
            return TypeOID.byteaArray
        case .uuids(let values):
            try appendArray(values, of: TypeOID.uuid) { $1.write(to: &$0.bytes) }
            return TypeOID.uuidArray
        }
    }

    private mutating func append(text: String) throws(StoreError) {
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        guard !bytes[start...].contains(0) else { throw .rejected(sqlstate: "22021") }
    }

    private mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// The layout of `array_send`: dimensions, has-NULL flag, element type, size and lower bound, then length and value
    /// each.
    private mutating func appendArray<Element>(
        _ values: [Element], of type: Oid, _ append: (inout ParameterBuffer, Element) throws(StoreError) -> Void
    ) throws(StoreError) {
        self.append(values.isEmpty ? 0 as Int32 : 1)
        self.append(0 as Int32)
        self.append(type)
        if values.isEmpty { return }
        self.append(Int32(clamping: values.count))
        self.append(1 as Int32)
        for value in values {
            let lengthAt = bytes.count
            self.append(0 as Int32)
            try append(&self, value)
            let length = UInt32(clamping: bytes.count - lengthAt - 4)
            for shift in 0..<4 { bytes[lengthAt + shift] = UInt8(truncatingIfNeeded: length >> (24 - 8 * shift)) }
        }
    }
}
