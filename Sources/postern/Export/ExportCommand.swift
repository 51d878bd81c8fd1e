import ArgumentParser

/// `postern export`.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write out what the configuration implies for other servers.",
        subcommands: [ExportAssociationsCommand.self])
}
