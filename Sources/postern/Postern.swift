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
            DoctorCommand.self, KeysCommand.self, AuditCommand.self,
        ])
}
