/// Logos of realms and Apps.
public struct BrandStore: Sendable {
    private let database: Database

    /// Reads through `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A logo as the administrator gave it.
    public struct Image: Sendable {
        /// `image/png`, `image/webp` or `image/svg+xml`.
        public let mediaType: String
        /// At most 64 KiB.
        public let data: [UInt8]
    }

    /// The logo with that SHA-256; `nil` when the realm has none.
    public func image(realm: UUIDValue, hash: [UInt8]) async throws(StoreError) -> Image? {
        try await database.all(Self.calls.image, ["realm": realm, "hash": hash]).first
    }

    struct Calls: Sendable {
        let image = FunctionCall<Image>("brand_image", ["realm", "hash"], effect: .readOnly) {
            (row) throws(StoreError) in Image(mediaType: try row("media_type"), data: try row("data"))
        }
    }
    static let calls = Calls()
}
