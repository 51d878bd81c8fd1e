/// Lets one caller in at a time, in the order in which they came.
actor Turnstile {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    nonisolated func pass<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        await enter()
        do {
            let result = try await body()
            await leave()
            return result
        } catch {
            await leave()
            throw error
        }
    }

    private func enter() async {
        guard isTaken else {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func leave() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}

/// One turnstile for each name, for all stores of the process.
actor Turnstiles {
    static let shared = Turnstiles()
    private var byName: [String: Turnstile] = [:]

    func turnstile(_ name: String) -> Turnstile {
        if let known = byName[name] { return known }
        let made = Turnstile()
        byName[name] = made
        return made
    }
}
