#if canImport(Security)
    import Foundation
    import Security

    /// Keeps the document in the Keychain of this device, readable after the first unlock. It is never synchronized and in
    /// no backup that goes to another device. It stays when the app is removed: call
    /// ``PosternClient/signOut(_:)`` with ``SignOutScope/forgettingThisDevice`` at the first launch if that is not wanted.
    ///
    /// An app and its extensions share it by an access group. There is no lock between them, because iOS ends a suspended
    /// process that holds one; the server makes it safe.
    public struct KeychainStore: SessionStore {
        private static let queue = DispatchQueue(label: "postern.keychain-store")

        private let accessGroup: String?
        private let name: String?

        /// - Parameters:
        ///   - accessGroup: `keychain-access-groups` entitlement that app and extensions share.
        ///   - name: of the item; by default one of its own for each origin and client.
        public init(accessGroup: String? = nil, name: String? = nil) {
            self.accessGroup = accessGroup
            self.name = name
        }

        /// The document.
        public func read() async throws -> Data? { try await blocking { try $0.read() } }

        /// Replaces the document.
        public func write(_ data: Data?) async throws { try await blocking { try $0.write(data) } }

        /// One body after another in this process.
        public func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
            let name = "keychain \(accessGroup ?? "") \(account)"
            return try await Turnstiles.shared.turnstile(name).pass(body)
        }

        private var account: String { name ?? "postern" }

        private func blocking<T: Sendable>(
            _ body: @escaping @Sendable (KeychainDocument) throws -> T
        ) async throws -> T {
            let document = KeychainDocument(items: GenericPasswords(accessGroup: accessGroup), account: account)
            return try await withCheckedThrowingContinuation { continuation in
                Self.queue.async { continuation.resume(with: Result { try body(document) }) }
            }
        }
    }

    extension KeychainStore: ComparingStore {
        package func write(_ data: Data?, replacing expected: Data?) async throws -> Bool {
            try await blocking { document in
                guard try document.read() == expected else { return false }
                try document.write(data)
                return true
            }
        }
    }

    extension KeychainStore: SettingAsideStore {
        package func setAside(_ damaged: Data?) async throws { try await blocking { try $0.setAside(damaged) } }
        package func forgetAside() async throws { try await blocking { try $0.forgetAside() } }
    }

    extension KeychainStore: NamedStore {
        package func named(_ name: String) -> any SessionStore {
            self.name == nil ? KeychainStore(accessGroup: accessGroup, name: name) : self
        }
    }

    extension KeychainStore: Discreet {
        /// Where the item is.
        public var shown: [(String, any Sendable)] { [("accessGroup", accessGroup), ("name", name)] }
    }

    private struct GenericPasswords: KeychainItems {
        let accessGroup: String?

        func read(_ account: String) -> (status: Int32, data: Data?) {
            var query = query(account)
            query[kSecReturnData as String] = true
            query[kSecMatchLimit as String] = kSecMatchLimitOne
            var item: CFTypeRef?
            let status = SecItemCopyMatching(dictionary(query), &item)
            return (status, item as? Data)
        }

        func add(_ account: String, _ data: Data) -> Int32 {
            var query = query(account)
            query[kSecValueData as String] = data
            query[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            return SecItemAdd(dictionary(query), nil)
        }

        func update(_ account: String, _ data: Data) -> Int32 {
            SecItemUpdate(dictionary(query(account)), dictionary([kSecValueData as String: data]))
        }

        func delete(_ account: String) -> Int32 { SecItemDelete(dictionary(query(account))) }

        private func query(_ account: String) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword,
                kSecAttrService as String: "postern-client",
                kSecAttrAccount as String: account,
                kSecAttrSynchronizable as String: false,
                kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }

        private func dictionary(_ members: [String: Any]) -> CFDictionary {
            NSDictionary(dictionary: members) as CFDictionary
        }
    }
#endif
