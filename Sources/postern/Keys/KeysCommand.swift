import ArgumentParser

/// `postern keys`.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "The keys that realms sign tokens with.", subcommands: [KeysRotateCommand.self])
}
