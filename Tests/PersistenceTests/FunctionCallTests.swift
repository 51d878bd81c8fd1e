import Foundation
import TestSupport
import Testing

@testable import Persistence

/// Every call that a store declares, with the name of its declaration.
private let declaredCalls: [(name: String, call: any DeclaredCall)] = {
    let stores: [Any] = [
        AccountStore.calls, ApprovalStore.calls, AddressVerificationStore.calls, AddressTokenStore.calls,
        AuditStore.calls, AuthorizationCodeStore.calls,
        BrandStore.calls, BrowserSessionStore.calls,
        ClientAssertionStore.calls, CodeStore.calls, ConfigurationStore.calls, ConsentStore.calls, DataKeyStore.calls,
        DeviceKeyStore.calls,
        IdentifierStore.calls, IdentityCodeStore.calls, KeyLineStore.calls, LogoutTokenStore.calls,
        MagicLinkStore.calls,
        MaintenanceStore.calls, OutboxStore.calls, OwnSessionStore.calls, PageStateStore.calls, PasskeyStore.calls,
        PermitStore.calls, PlacementStore.calls, PossessionStore.calls, ProofStore.calls, QueueStore.calls,
        SecondFactorStore.calls, SentFormStore.calls,
        ServerProbe.calls,
        ServiceAccountStore.calls,
        SessionStore.calls, SignInRequestStore.calls, SigningKeyStore.calls, TestIdentityStore.calls,
        UndoStore.calls, WebhookStore.calls,
    ]
    return stores.flatMap { store in
        Mirror(reflecting: store).children.compactMap { child in
            (child.value as? any DeclaredCall).map { (name: "\(type(of: store)).\(child.label ?? "")", call: $0) }
        }
    }
}()

private let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

@Suite("Declared calls")
struct FunctionCallTests {
    private let call = FunctionCall<(String, Int?)>(
        "f", ["realm", Argument("source", of: ["a", "b"]) { "g(\($0[0]), \($0[1]))" }, "id"], effect: .once
    ) { (row) throws(StoreError) in (try row("first"), try row("second", sql: "x + 1")) }

    @Test func `the text names arguments and columns`() {
        #expect(
            call.statement.sql
                == "SELECT first, x + 1 AS second FROM postern.f(p_realm => $1, p_source => g($2, $3), p_id => $4)")
        #expect(
            FunctionCall<Bool>("g", ["realm"], effect: .once).statement.sql == "SELECT postern.g(p_realm => $1)")
    }

    @Test func `a call for each item of arrays numbers them`() {
        let batch = FunctionCall<Int>(
            "f", named: "f_batch", ["realm", .item("id") { "ARRAY[\($0)]" }, .constant("keys", "'{}'")],
            effect: .readOnly,
            returns: { columns in
                let number = columns("number", Int.self, sql: "item.number")
                return { (row) throws(StoreError) in try row[number] }
            })
        #expect(batch.statement.name == "f_batch")
        #expect(
            batch.statement.sql
                == "SELECT item.number AS number FROM unnest($2) WITH ORDINALITY AS item (in_id, number), "
                + "postern.f(p_realm => $1, p_id => ARRAY[item.in_id], p_keys => '{}')")
    }

    @Test func `a composite is a row of its values, and a value of two is bound once`() throws {
        let call = FunctionCall<Bool>(
            "f",
            [
                .row("caller", ["realm", .row("proof", as: "proof_use", [.value("key", from: "proof_key"), "source"])]),
                .row("new", as: "session", ["id", "source", .constant("page", "NULL")]),
            ], effect: .once)
        #expect(
            call.statement.sql == "SELECT postern.f(p_caller => ROW($1, ROW($2, $3)::postern.proof_use)::postern.caller, "
                + "p_new => ROW($4, $3, NULL)::postern.session)")
        #expect(
            try call.values(["realm": "r", "source": "s", "id": "i", "proof_key": "k"])
                == [.text("r"), .text("k"), .text("s"), .text("i")])
    }

    @Test func `values are bound by name, in whatever order they are given`() throws {
        let realm = UUIDValue.random()
        let values: [Parameter] = [.uuid(realm), .text("x"), .null, .int(1)]
        #expect(try call.values(["realm": realm, "a": "x", "b": String?.none, "id": Int32(1)]) == values)
        #expect(try call.values(["id": Int32(1), "b": String?.none, "a": "x", "realm": realm]) == values)
    }

    @Test func `a missing, unknown or repeated argument is refused`() {
        let refused = StoreError.rejected(sqlstate: "42P02")
        #expect(throws: refused) { try call.values(["realm": "r", "a": "x", "b": "y"]) }
        #expect(throws: refused) { try call.values(["realm": "r", "a": "x", "b": "y", "other": "z"]) }
        #expect(throws: refused) { try call.values(["realm": "r", "a": "x", "a": "y", "id": "z"]) }
        #expect(throws: refused) { try call.values(["realm": "r", "a": "x", "b": "y", "id": "z", "other": "z"]) }
    }

    @Test func `a column that two decoders ask for is read once`() {
        let shared = FunctionCall<Int>(
            "f", effect: .readOnly,
            returns: { columns in
                let first = columns("n", Int.self)
                let second = columns.record { (row) throws(StoreError) in (try row("m") as Int) + (try row("n") as Int)
                }
                return { (row) throws(StoreError) in try row[first] + second(row) }
            })
        #expect(shared.statement.sql == "SELECT n, m FROM postern.f()")
    }

    /// A call that no store's `Calls` holds would escape the comparison with the catalogue.
    @Test func `every call in the sources is a member of a store's calls`() throws {
        let folder = repository.appending(path: "Sources/Persistence")
        let declaration = /FunctionCall(?:<[^\n]*>)?\(\s*"(\w+)"/
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var written: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            written.formUnion(try String(contentsOf: file, encoding: .utf8).matches(of: declaration).map { "\($0.1)" })
        }
        #expect(written.count > 50)
        #expect(written.subtracting(declaredCalls.map(\.call.function)) == [])
        #expect(Set(declaredCalls.map(\.call.statement.name)).count == declaredCalls.count, "two share a name")
    }

    /// `select … from postern.f(…);` of a script for pgbench.
    private static func calls(inScript text: String) -> [(columns: Set<String>, function: String, arguments: Int)] {
        let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.matches(of: /select ([\w, ]+) from postern\.(\w+)\((.*?)\);/).map { call in
            // Commas inside brackets and literals separate no arguments.
            var depth = 0, count = 1, isQuoted = false
            for character in call.3 {
                if character == "'" { isQuoted.toggle() }
                guard !isQuoted else { continue }
                if "([{".contains(character) { depth += 1 }
                if ")]}".contains(character) { depth -= 1 }
                if character == ",", depth == 0 { count += 1 }
            }
            return (Set(call.1.split(separator: ", ").map(String.init)), String(call.2), count)
        }
    }

    private static let scripts =
        ((try? FileManager.default.contentsOfDirectory(
            at: repository.appending(path: "sql/bench"), includingPropertiesForKeys: nil)) ?? [])
        .filter {
            $0.pathExtension == "sql" && !["seed.sql", "hosted.sql", "crowd.sql"].contains($0.lastPathComponent)
        }

    @Test func `the scripts for pgbench run what the server sends`() throws {
        #expect(Self.scripts.count >= 6)
        for script in Self.scripts { try Self.check(script) }
    }

    private static func check(_ script: URL) throws {
        let calls = Self.calls(inScript: try String(contentsOf: script, encoding: .utf8))
        #expect(!calls.isEmpty, "\(script.lastPathComponent)")
        for call in calls {
            let declared = try #require(declaredCalls.first { $0.call.statement.name == call.function }?.call)
            #expect(Set(declared.columns.compactMap(\.name)) == call.columns, "\(call.function)")
            #expect(declared.arguments.count == call.arguments, "\(call.function)")
        }
    }
}

extension DatabaseTests {
    @Suite("Declared calls and the catalogue")
    struct FunctionCatalogueTests {
        private struct Parameter {
            let name: String
            let type: String
            let oid: UInt32
            let isInput: Bool
            let hasDefault: Bool
        }
        private struct Function {
            let resultType: UInt32
            let parameters: [Parameter]
        }

        /// Types of the schema, by their numbers.
        private struct Types {
            /// Words of enumerations, and of arrays of them.
            var labels: [UInt32: Set<String>] = [:]
            /// Attributes of composite types, in their order.
            var attributes: [UInt32: [(name: String, type: UInt32)]] = [:]

            init() {}

            init(in database: String) async throws {
                let rows = try await Shared.postgres.value.psql(
                    """
                    SELECT 'label', t.oid::int8, t.typarray::int8, e.enumlabel
                      FROM pg_enum AS e JOIN pg_type AS t ON t.oid = e.enumtypid
                    UNION ALL
                    (SELECT 'attribute', t.oid::int8, a.atttypid::int8, a.attname
                       FROM pg_type AS t JOIN pg_attribute AS a ON a.attrelid = t.typrelid
                      WHERE t.typnamespace = 'postern'::regnamespace AND a.attnum > 0 ORDER BY t.oid, a.attnum)
                    """, database: database)
                for row in rows {
                    let fields = row.split(separator: "|").map(String.init)
                    try #require(fields.count == 4)
                    let (type, other) = (try #require(UInt32(fields[1])), try #require(UInt32(fields[2])))
                    if fields[0] == "label" {
                        labels[type, default: []].insert(fields[3])
                        labels[other, default: []].insert(fields[3])
                    } else {
                        attributes[type, default: []].append((fields[3], other))
                    }
                }
            }
        }

        /// The functions of the schema by name; an overloaded name has several.
        private static func functions(in database: String) async throws -> [String: [Function]] {
            let rows = try await Shared.postgres.value.psql(
                """
                SELECT p.proname, p.oid, p.prorettype::oid::int8, coalesce(a.name, ''), coalesce(format_type(a.type, NULL), ''),
                       coalesce(a.type::int8, 0), coalesce(a.mode, 'i') IN ('i', 'b', 'v'),
                       coalesce(a.number > p.pronargs - p.pronargdefaults, false)
                  FROM pg_proc AS p
                  LEFT JOIN pg_type AS r ON r.oid = p.prorettype
                  LEFT JOIN LATERAL (
                      SELECT x.* FROM ROWS FROM (unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])),
                                                 unnest(p.proargnames), unnest(p.proargmodes::text[]))
                                 WITH ORDINALITY AS x (type, name, mode, number)
                       UNION ALL
                      SELECT t.atttypid, t.attname, 'o', 1000 + t.attnum FROM pg_attribute AS t
                       WHERE t.attrelid = r.typrelid AND t.attnum > 0 AND NOT t.attisdropped) AS a ON true
                 WHERE p.pronamespace = 'postern'::regnamespace ORDER BY p.oid, a.number
                """, database: database)
            var functions: [String: [String: Function]] = [:]
            for row in rows {
                let fields = row.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
                try #require(fields.count == 8)
                let known = functions[fields[0]]?[fields[1]]
                let parameter = Parameter(
                    name: fields[3], type: fields[4], oid: try #require(UInt32(fields[5])), isInput: fields[6] == "t",
                    hasDefault: fields[7] == "t")
                functions[fields[0], default: [:]][fields[1]] = Function(
                    resultType: try #require(UInt32(fields[2])),
                    parameters: (known?.parameters ?? []) + (parameter.name.isEmpty ? [] : [parameter]))
            }
            return functions.mapValues { Array($0.values) }
        }

        private func migrated() async throws -> String {
            let postgres = try await Shared.postgres.value
            let database = try await postgres.createDatabase()
            try await Migrator(conninfo: postgres.conninfo(database: database)).migrate()
            return database
        }

        /// What of a call does not fit the functions of that name.
        private static func problems(
            of call: any DeclaredCall, in functions: [Function], _ types: Types = Types()
        ) -> [String] {
            let given = Set(call.arguments.map { "p_\($0.name)" })
            let candidates = functions.filter { function in
                let inputs = function.parameters.filter(\.isInput)
                return given.isSubset(of: inputs.map(\.name))
                    && inputs.allSatisfy { $0.hasDefault || given.contains($0.name) }
            }
            guard let function = candidates.first, candidates.count == 1 else {
                return ["\(candidates.count) functions take \(given.sorted())"]
            }
            func type(of column: String) -> Parameter? {
                function.parameters.first { !$0.isInput && $0.name == column }
            }
            /// Words of an enumeration are the same in both; other types are those that can be read.
            func fits(_ column: Columns.Declared, _ oid: UInt32) -> Bool {
                types.labels[oid].map { $0 == column.labels.map(Set.init) } ?? column.types.contains(oid)
            }
            let arguments = call.arguments.compactMap { argument -> String? in
                guard let row = argument.row else { return nil }
                let attributes = function.parameters.first { $0.isInput && $0.name == "p_\(argument.name)" }
                    .flatMap { types.attributes[$0.oid] }
                return attributes?.map(\.name) == row.attributes.map { "\($0.name)" }
                    ? nil : "\(argument.name) has other attributes"
            }
            return arguments
                + call.columns.compactMap { column in
                    guard let name = column.name else {
                        return fits(column, function.resultType) ? nil : "the result has another type"
                    }
                    if let composite = column.composite {
                        let attributes = type(of: composite).flatMap { types.attributes[$0.oid] }
                        let attribute = attributes?.first { "\(composite)_\($0.name)" == name }
                        return attribute.map { fits(column, $0.type) } ?? false ? nil : "\(name) is another attribute"
                    }
                    // An expression says its type itself; PREPARE evaluates it.
                    if column.sql != nil { return nil }
                    guard let output = type(of: name) else { return "\(name) is not returned" }
                    return fits(column, output.oid) ? nil : "\(name) is \(output.type)"
                }
        }

        @Test func `every declared call fits a function: arguments, defaults, columns and their types`() async throws {
            let database = try await migrated()
            let (functions, types) = (try await Self.functions(in: database), try await Types(in: database))
            for (name, call) in declaredCalls {
                #expect(Self.problems(of: call, in: functions[call.function] ?? [], types) == [], "\(name)")
            }
        }

        @Test func `every composite argument names the attributes of its type, in their order`() async throws {
            let rows = try await Shared.postgres.value.psql(
                """
                SELECT t.typname, string_agg(a.attname, ',' ORDER BY a.attnum)
                  FROM pg_type AS t JOIN pg_attribute AS a ON a.attrelid = t.typrelid AND a.attnum > 0
                 WHERE t.typnamespace = 'postern'::regnamespace GROUP BY 1
                """, database: migrated())
            let types = Dictionary(
                uniqueKeysWithValues: rows.map { row in
                    let fields = row.split(separator: "|").map(String.init)
                    return (fields[0], fields[1])
                })
            func check(_ arguments: [Argument]) -> Int {
                arguments.compactMap(\.row).reduce(0) { count, row in
                    #expect(row.attributes.map { "\($0.name)" }.joined(separator: ",") == types["\(row.type)"], "\(row.type)")
                    return count + 1 + check(row.attributes)
                }
            }
            #expect(declaredCalls.reduce(0) { $0 + check($1.call.arguments) } > 50)
        }

        @Test func `a call that does not fit is found`() {
            let function = Function(
                resultType: 2249,
                parameters: [
                    Parameter(name: "p_realm", type: "uuid", oid: 2950, isInput: true, hasDefault: false),
                    Parameter(name: "p_id", type: "uuid", oid: 2950, isInput: true, hasDefault: true),
                    Parameter(name: "name", type: "text", oid: 25, isInput: false, hasDefault: false),
                ])
            func problems(_ arguments: [Argument], _ column: String, isText: Bool = true) -> [String] {
                let call: any DeclaredCall =
                    isText
                    ? FunctionCall<String>("f", arguments, effect: .once) { (row) throws(StoreError) in try row(column)
                    }
                    : FunctionCall<Int>("f", arguments, effect: .once) { (row) throws(StoreError) in try row(column) }
                return Self.problems(of: call, in: [function])
            }
            #expect(problems(["realm"], "name") == [])
            #expect(problems(["realm", "id"], "name") == [])
            #expect(problems(["id"], "name") == ["0 functions take [\"p_id\"]"])
            #expect(problems(["realm", "other"], "name") == ["0 functions take [\"p_other\", \"p_realm\"]"])
            #expect(problems(["realm"], "title") == ["title is not returned"])
            #expect(problems(["realm"], "name", isText: false) == ["name is text"])
            #expect(
                Self.problems(of: FunctionCall<Bool>("f", ["realm"], effect: .once), in: [function])
                    == ["the result has another type"])
        }

        @Test func `an enumeration or a composite type that differs from the database's is found`() {
            enum Colour: String, CaseIterable, ColumnValue { case red, blue }
            var types = Types()
            types.labels = [100: ["red", "blue"], 101: ["red", "blue", "green"]]
            types.attributes = [200: [("id", 2950), ("colour", 100)], 201: [("id", 2950), ("colour", 101)]]
            func problems(_ attributes: [StaticString], _ composite: UInt32, _ colour: UInt32) -> [String] {
                let call = FunctionCall<(Colour, Colour?)>(
                    "f", [.row("thing", attributes.map { .value($0, from: $0) })], effect: .once
                ) { columns in
                    let colour = columns("colour", Colour.self)
                    let thing = columns.composite("thing") { (row) throws(StoreError) in try row("colour") as Colour }
                    return { (row) throws(StoreError) in (try row[colour], try thing(row)) }
                }
                let function = Function(
                    resultType: 2249,
                    parameters: [
                        Parameter(name: "p_thing", type: "thing", oid: 200, isInput: true, hasDefault: false),
                        Parameter(name: "colour", type: "colour", oid: colour, isInput: false, hasDefault: false),
                        Parameter(name: "thing", type: "thing", oid: composite, isInput: false, hasDefault: false),
                    ])
                return Self.problems(of: call, in: [function], types)
            }
            #expect(problems(["id", "colour"], 200, 100) == [])
            #expect(problems(["colour", "id"], 200, 100) == ["thing has other attributes"])
            #expect(problems(["id", "colour"], 201, 100) == ["thing_colour is another attribute"])
            #expect(problems(["id", "colour"], 202, 100) == ["thing_colour is another attribute"])
            #expect(problems(["id", "colour"], 200, 101) == ["colour is colour"])
        }

        @Test func `every declared call can be prepared`() async throws {
            let database = try await migrated()
            let functions = try await Self.functions(in: database)
            let statements = declaredCalls.map { (_, call) in
                // What is unnested must say its type; all others are known by the function.
                var bound: Set<String> = []
                let types = call.arguments.flatMap { argument in
                    // A value of two arguments is bound once.
                    argument.values.filter { argument.isItem || bound.insert("\($0)").inserted }.map { _ in
                        let type = functions[call.function]?.flatMap(\.parameters)
                            .first { $0.isInput && $0.name == "p_\(argument.name)" }?.type
                        guard argument.isItem, let type else { return "unknown" }
                        return type.hasSuffix("[]") ? type : type + "[]"
                    }
                }
                let list = types.isEmpty ? "" : " (\(types.joined(separator: ", ")))"
                return "PREPARE \(call.statement.name)\(list) AS \(call.statement.sql);"
            }
            let answer = try await Shared.postgres.value.psql(statements.joined(separator: "\n"), database: database)
            #expect(answer.isEmpty)
        }
    }
}
