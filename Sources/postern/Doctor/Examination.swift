/// Counts checks and prints the result of each.
struct Examination {
    private(set) var checks = 0
    private(set) var failures = 0

    /// - Parameter body: throws the reason of a failure; what it returns is said, too.
    /// - Returns: whether all is well.
    @discardableResult
    mutating func check(_ name: String, _ body: () async throws -> String) async -> Bool {
        do {
            let finding = try await body()
            checks += 1
            say("ok    \(name)" + (finding.isEmpty ? "" : ": \(finding)"))
            return true
        } catch {
            fail(name, "\(error)")
            return false
        }
    }

    @discardableResult
    mutating func check(_ name: String, _ body: () async throws -> Void) async -> Bool {
        await check(name) {
            try await body()
            return ""
        }
    }

    mutating func fail(_ name: String, _ reason: String) {
        checks += 1
        failures += 1
        say("FAIL  \(name): \(reason)")
    }

    func skip(_ names: String..., because reason: String) {
        say("skip  \(names.joined(separator: ", ")): \(reason)")
    }
}
