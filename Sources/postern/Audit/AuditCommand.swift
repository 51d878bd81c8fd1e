import ArgumentParser

/// `postern audit`.
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "The audit log.", subcommands: [AuditExportCommand.self])
}
