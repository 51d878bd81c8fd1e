import ArgumentParser

/// `postern keys`.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Signing keys of realms, and the lines of the key file.",
        subcommands: [KeysRotateCommand.self, KeysResealCommand.self])
}
