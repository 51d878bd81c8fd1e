import Foundation

/// The generic passwords of one service in the Keychain. Each function gives a status of Security's.
protocol KeychainItems: Sendable {
    func read(_ account: String) -> (status: Int32, data: Data?)
    func add(_ account: String, _ data: Data) -> Int32
    func update(_ account: String, _ data: Data) -> Int32
    func delete(_ account: String) -> Int32
}

/// Reads and writes a document in the Keychain: what each status means. Its functions block.
struct KeychainDocument: Sendable {
    enum Status {
        static let success: Int32 = 0
        static let duplicate: Int32 = -25299
        static let notFound: Int32 = -25300
        static let interactionNotAllowed: Int32 = -25308
    }

    let items: any KeychainItems
    let account: String

    /// - Throws: ``StoreLocked`` before the first unlock.
    func read() throws -> Data? {
        let (status, data) = items.read(account)
        switch status {
        case Status.success: return data
        case Status.notFound:
            try probe()
            return nil
        default: throw failure(status)
        }
    }

    /// Changes the item in place: an item that is deleted and added could be lost in between.
    func write(_ data: Data?) throws {
        guard let data else {
            let status = items.delete(account)
            guard status == Status.success || status == Status.notFound else { throw failure(status) }
            return
        }
        var status = items.update(account, data)
        if status == Status.notFound { status = items.add(account, data) }
        if status == Status.duplicate { status = items.update(account, data) }
        guard status == Status.success else { throw failure(status) }
    }

    func setAside(_ damaged: Data?) throws {
        let (status, data) = items.read(account)
        guard status == Status.success, let data, data == damaged else { return }
        try KeychainDocument(items: items, account: account + ".damaged").write(data)
        try write(nil)
    }

    func forgetAside() throws { try KeychainDocument(items: items, account: account + ".damaged").write(nil) }

    /// Before the first unlock iOS says "not found" too. Only where an item can be added, the other one is not there.
    private func probe() throws {
        let name = account + ".probe"
        let status = items.add(name, Data([0]))
        guard status == Status.success || status == Status.duplicate else { throw failure(status) }
        let removed = items.delete(name)
        guard removed == Status.success || removed == Status.notFound else { throw failure(removed) }
    }

    private func failure(_ status: Int32) -> any Error {
        status == Status.interactionNotAllowed
            ? StoreLocked()
            : PosternError.misuse("the Keychain answered \(status): check the entitlements of the app")
    }
}
