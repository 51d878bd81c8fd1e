import ArgumentParser

/// The `postern` command.
@main
struct Postern: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postern",
        abstract: "A multi-tenant OIDC token endpoint with native passwordless grants.",
        version: Version.text,
        subcommands: [
            DevCommand.self, ServeCommand.self, MigrateCommand.self, TryCommand.self, ExportCommand.self,
            DoctorCommand.self, KeysCommand.self, AuditCommand.self, RealmCommand.self,
        ])

    /// As ArgumentParser's own; what was logged before a failure is written before the process ends.
    static func main() async {
        defer { LogWriter.shared.flush() }
        do {
            var command = try parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            LibraryOutput.end()
            LogWriter.shared.flush()
            exit(withError: error)
        }
    }
}
