import Foundation

extension PosternClient {
    /// The document as the store has it now.
    /// - Throws: ``PosternError/unavailable(retryAfter:)`` while the store cannot be read.
    func document() async throws -> Document {
        try await desk.pass { try await self.look() }
    }

    /// Changes the document. The body may run more than once, each time on what the store has then.
    /// - Throws: ``PosternError/unavailable(retryAfter:)`` when nothing was changed, and what the body throws.
    @discardableResult
    func change<Result: Sendable>(_ body: @Sendable (inout Document) throws -> Result) async throws -> Result {
        try await desk.pass { try await self.edit(body) }
    }

    private func look() async throws -> Document {
        let document = try await decode(load())
        saw(document)
        return document
    }

    private func edit<Result: Sendable>(
        _ body: @Sendable (inout Document) throws -> Result
    ) async throws -> Result {
        while true {
            let data = try await load()
            let former = try await decode(data)
            var document = former
            let result = try body(&document)
            var isSaved = document == former
            if !isSaved { isSaved = try await save(document.data, replacing: data) }
            if isSaved {
                saw(document)
                return result
            }
        }
    }

    private func saw(_ document: Document) {
        mustRevoke = !document.toRevoke.isEmpty
        publish(document.state)
    }

    private func load() async throws -> Data? {
        do { return try await store.read() } catch { throw failure(error) }
    }

    private func save(_ data: Data?, replacing former: Data?) async throws -> Bool {
        // What could not be read again would cost key and session.
        guard data?.count ?? 0 <= Document.mostBytes else { throw PosternError.unavailable(retryAfter: nil) }
        do {
            if let store = store as? any ComparingStore { return try await store.write(data, replacing: former) }
            try await store.write(data)
            return true
        } catch {
            throw failure(error)
        }
    }

    private func decode(_ data: Data?) async throws -> Document {
        do {
            return try Document(data)
        } catch Document.Unreadable.newer {
            publish(.locked)
            throw PosternError.unavailable(retryAfter: nil)
        } catch {
            return try await setAside(data)
        }
    }

    /// Begins anew after a damaged document.
    private func setAside(_ damaged: Data?) async throws -> Document {
        var document = Document()
        document.reason = .keyLost
        do { try await (store as? any SettingAsideStore)?.setAside(damaged) } catch { throw failure(error) }
        log("store_damaged")
        openKey = nil
        _ = try await save(document.data, replacing: store is any SettingAsideStore ? nil : damaged)
        return document
    }

    /// What a failure of the store means to callers.
    func failure(_ error: any Error) -> PosternError {
        switch error {
        case let error as PosternError: return error
        case is StoreLocked:
            publish(.locked)
            return .unavailable(retryAfter: nil)
        case is CancellationError: return .cancelled
        default: return .unavailable(retryAfter: nil)
        }
    }
}
