import Logging
import Persistence
import TestSupport
import Testing

@Suite("Statements against a real server")
struct QueryTests {
    @Test func `every kind of value survives the way there and back`() async throws {
        try await withDatabase { database, _ in
            let uuid = UUIDValue.random()
            let echo = Statement(
                name: "echo",
                sql: """
                    SELECT $1::uuid, $2::bytea, $3::text, $4::integer, $5::bigint, $6::double precision, $7::boolean, $8::text[],
                           $9::integer[], $10::double precision[], $11::bytea[], $12::uuid[], $13::jsonb, $14::text
                    """,
                effect: .readOnly)
            let parameters: [Parameter] = [
                .uuid(uuid), .bytes([0, 255, 7]), .text("Grüße 🗝"), .int(.min), .bigint(.max), .double(-0.1), .bool(true),
                .texts(["a", "", "ü,\"{}"]), .ints([1, -1]), .doubles([1.5]), .byteArrays([[], [0]]), .uuids([uuid]),
                .json("{\"a\": [1]}"), .null,
            ]
            let rows = try await database.query(echo, parameters) { (row) throws(StoreError) in
                #expect(try row.uuid(0) == uuid)
                #expect(try row.bytes(1) == [0, 255, 7])
                #expect(try row.text(2) == "Grüße 🗝")
                #expect(try row.int(3) == .min)
                #expect(try row.bigint(4) == .max)
                #expect(try row.double(5) == -0.1)
                #expect(try row.bool(6))
                #expect(try row.texts(7) == ["a", "", "ü,\"{}"])
                #expect(try row.ints(8) == [1, -1])
                #expect(try row.doubles(9) == [1.5])
                #expect(try row.byteArrays(10) == [[], [0]])
                #expect(try row.uuids(11) == [uuid])
                #expect(try row.text(12) == "{\"a\": [1]}")
                #expect(try row.textOrNil(13) == nil)
                return row.columnCount
            }
            #expect(rows == [14])
        }
    }
}
