extension Migrator {
    /// The newest migration this binary knows, as `postern.schema_version()` answers when the database fits.
    public static let schemaVersion: Int32 = SQLFile.migrations.compactMap(\.version).max() ?? 0
}
