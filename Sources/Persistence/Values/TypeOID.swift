import CLibPQ

/// Object identifiers of the built-in types this module reads and writes; fixed in PostgreSQL's catalogue
/// (`pg_type.dat`).
enum TypeOID {
    /// Lets the server infer the type from the statement.
    static let unspecified: Oid = 0
    static let bool: Oid = 16
    static let bytea: Oid = 17
    static let name: Oid = 19
    static let int8: Oid = 20
    static let int2: Oid = 21
    static let int4: Oid = 23
    static let text: Oid = 25
    static let json: Oid = 114
    static let float4: Oid = 700
    static let float8: Oid = 701
    static let unknown: Oid = 705
    static let bpchar: Oid = 1042
    static let varchar: Oid = 1043
    static let interval: Oid = 1186
    static let uuid: Oid = 2950
    static let jsonb: Oid = 3802
    static let byteaArray: Oid = 1001
    static let nameArray: Oid = 1003
    static let int4Array: Oid = 1007
    static let textArray: Oid = 1009
    static let int8Array: Oid = 1016
    static let varcharArray: Oid = 1015
    static let float8Array: Oid = 1022
    static let uuidArray: Oid = 2951
    /// Types of a schema, as enumerations, have other numbers in each database, all from here on
    /// (`FirstNormalObjectId`).
    static let firstOfSchemas: Oid = 16384
}
