import Foundation

extension PosternClient {
    /// The key of the store; made and stored at its first use. `nil` where nothing needs one.
    ///
    /// - Throws: ``PosternError/signedOut(_:)`` with `keyLost` when the session's key is gone: then session and key are
    ///   erased, since a bound session never gets another key.
    func key(for proof: Call.Proof, in document: Document) async throws -> (any SigningKey)? {
        let isBound = document.session?.boundKey != nil
        guard proof != .none, proof == .device || configuration.key != .none || isBound else { return nil }
        guard let stored = document.key else {
            if isBound { throw try await loseKey(document) }
            var document = document
            let made = try await makeKey()
            document.key = made
            return try await open(made, in: document)
        }
        return try await open(stored, in: document)
    }

    private func makeKey() async throws -> StoredKey {
        do {
            let made = try await surroundings.keys.make(configuration.key)
            let (kept, isOurs) = try await change { document in
                if let present = document.key { return (present, false) }
                document.key = made
                return (made, true)
            }
            if isOurs { log("key_made", ["kind": made.kind.rawValue]) }
            return kept
        } catch is KeyFailure {
            throw PosternError.unavailable(retryAfter: nil)
        }
    }

    private func open(_ stored: StoredKey, in document: Document) async throws -> any SigningKey {
        let key: any SigningKey
        if let openKey, openKey.stored == stored {
            key = openKey.key
        } else {
            do { key = try await surroundings.keys.open(stored) } catch { throw try await keyFailure(error, document) }
            openKey = (stored, key)
        }
        if let bound = document.session?.boundKey, bound != key.thumbprint { throw try await loseKey(document) }
        return key
    }

    /// A proof for one attempt, right before it is sent.
    func proof(
        by key: any SigningKey, method: String, url: String, token: String?, nonce: String?, in document: Document
    ) async throws -> String {
        let now = surroundings.now().addingTimeInterval(document.clockOffset)
        do {
            return try await Proof.make(key, method: method, url: url, token: token, nonce: nonce, at: now)
        } catch {
            throw try await keyFailure(error, document)
        }
    }

    /// What the key states, as a JWS with the public key in its header (RFC 7515).
    func sign(
        _ type: String, _ claims: JSONValue, by key: any SigningKey, in document: Document
    ) async throws -> String {
        do { return try await key.sign(type: type, claims) } catch { throw try await keyFailure(error, document) }
    }

    private func keyFailure(_ error: any Error, _ document: Document) async throws -> PosternError {
        if case KeyFailure.locked = error { return .unavailable(retryAfter: nil) }
        if error is CancellationError { return .cancelled }
        return try await loseKey(document)
    }

    /// Erases what is worth nothing without the key. A session of bearer tokens is worth as much as before.
    private func loseKey(_ former: Document) async throws -> PosternError {
        openKey = nil
        let isOver = try await change { document in
            guard document.key == former.key, document.session?.id == former.session?.id else { return false }
            document.key = nil
            guard document.session == nil || document.session?.boundKey != nil else { return false }
            document.endSession(.keyLost)
            return true
        }
        log("key_lost")
        return isOver ? .signedOut(.keyLost) : .unavailable(retryAfter: nil)
    }
}
