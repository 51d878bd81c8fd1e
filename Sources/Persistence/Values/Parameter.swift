/// A bound value. Travels in PostgreSQL's binary format with its type, never inside SQL text.
public enum Parameter: Sendable, Equatable {
    /// NULL, of the type the statement has at that place.
    case null
    /// `uuid`.
    case uuid(UUIDValue)
    /// `bytea`.
    case bytes([UInt8])
    /// `text`. A NUL character is refused before anything is sent: PostgreSQL cannot store it.
    case text(String)
    /// `integer`.
    case int(Int32)
    /// `bigint`.
    case bigint(Int64)
    /// `double precision`.
    case double(Double)
    /// `boolean`.
    case bool(Bool)
    /// `interval`, to the microsecond.
    case interval(Duration)
    /// `text[]`.
    case texts([String])
    /// `integer[]`.
    case ints([Int32])
    /// `bigint[]`.
    case bigints([Int64])
    /// `double precision[]`.
    case doubles([Double])
    /// `bytea[]`.
    case byteArrays([[UInt8]])
    /// `uuid[]`.
    case uuids([UUIDValue])
    /// A word of an enumeration; the server decides which.
    case word(String)
    /// JSON text for a `json` or `jsonb` place; the server decides which.
    case json(String)
}
