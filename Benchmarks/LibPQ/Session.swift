import CLibPQ
import Persistence

/// The answer to a request on its way between threads; freed by ``isExpected(_:)``.
struct Answer: @unchecked Sendable {
    let pointer: OpaquePointer?

    func isExpected(_ request: Request) -> Bool {
        guard let pointer else { return false }
        defer { PQclear(pointer) }
        guard PQresultStatus(pointer) == PGRES_TUPLES_OK, PQntuples(pointer) == 1, let value = PQgetvalue(pointer, 0, 0)
        else { return false }
        return UInt8(bitPattern: value[0]) == request.expected
    }
}

/// The least around a `PGconn`: the strategies differ in who calls it, which must be one thread at a time.
final class Session: @unchecked Sendable {
    let pointer: OpaquePointer
    private var bytes: [UInt8] = []
    private var ends: [Int] = []

    init(_ conninfo: String) {
        guard let pointer = PQconnectdb(conninfo), PQstatus(pointer) == CONNECTION_OK else {
            fatalError("no connection")
        }
        self.pointer = pointer
        for workload in Workload.allCases {
            let statement = workload.statement
            let types: [Oid] = workload == .introspect ? [2950, 2950, 17] : [2950, 2950, 2950, 23, 17, 17]
            PQclear(PQprepare(pointer, statement.name, statement.sql, Int32(types.count), types))
        }
        precondition(PQsetnonblocking(pointer, 1) == 0)
    }

    deinit { PQfinish(pointer) }

    var descriptor: Int32 { PQsocket(pointer) }

    /// Encodes and sends; in pipeline mode ``PQpipelineSync`` has to follow.
    func send(_ request: Request) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        for parameter in request.parameters {
            switch parameter {
            case .uuid(let value): bytes.append(contentsOf: value.bytes)
            case .bytes(let value): bytes.append(contentsOf: value)
            case .int(let value): withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
            default: fatalError("not used here")
            }
            ends.append(bytes.count)
        }
        let sent = bytes.withUnsafeBytes { memory in
            withUnsafeTemporaryAllocation(of: UnsafePointer<CChar>?.self, capacity: 8) { values in
                withUnsafeTemporaryAllocation(of: Int32.self, capacity: 16) { numbers in
                    var start = 0
                    for (index, end) in ends.enumerated() {
                        values[index] = memory.baseAddress.map { ($0 + start).assumingMemoryBound(to: CChar.self) }
                        numbers[index] = Int32(end - start)
                        numbers[8 + index] = 1
                        start = end
                    }
                    guard let base = numbers.baseAddress else { return Int32(0) }
                    return PQsendQueryPrepared(
                        pointer, request.statement.name, Int32(ends.count), values.baseAddress, base, base + 8, 1)
                }
            }
        }
        guard sent == 1 else { fatalError("not sent") }
    }

    /// Takes what has arrived. - Returns: the answer once it is complete.
    func receive() -> Answer? {
        guard PQconsumeInput(pointer) == 1 else { fatalError("lost") }
        while PQisBusy(pointer) == 0 {
            guard let result = PQgetResult(pointer) else {
                defer { kept = nil }
                return Answer(pointer: kept)
            }
            PQclear(kept)
            kept = result
        }
        return nil
    }

    /// A result whose end has not come yet.
    var kept: OpaquePointer?
}
