import Foundation
import PackagePlugin

/// Embeds text files into the target that uses it, as `Embedded.<name>` (see the tool `embed-files`).
///
/// Which files is a matter of place: a target's own folder `Templates` becomes `Embedded.templates`; `Persistence` gets
/// the package's `sql/schema`, `sql/migrations`, `sql/functions` and `sql/facts`, `HostedPages` its `clients/js` as
/// `Embedded.modules`, and the executable its `examples/spa` as `Embedded.demoApp`, and `BuildFacts`: commit, compiler
/// and resolved packages.
@main
struct EmbedFiles: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let facts = target.name == "postern" ? [try buildFacts(context)] : []
        var folders: [(name: String, url: URL)] = []
        if target.name == "Persistence" {
            let sql = context.package.directoryURL.appending(path: "sql")
            for name in ["schema", "migrations", "functions", "facts"] {
                folders.append((name, sql.appending(path: name)))
            }
        }
        if target.name == "HostedPages" {
            folders.append(("modules", context.package.directoryURL.appending(path: "clients/js")))
        }
        if target.name == "postern" {
            folders.append(("demoApp", context.package.directoryURL.appending(path: "examples/spa")))
        }
        let templates = target.directoryURL.appending(path: "Templates")
        if FileManager.default.fileExists(atPath: templates.path()) { folders.append(("templates", templates)) }
        guard !folders.isEmpty else { return facts }

        let output = context.pluginWorkDirectoryURL.appending(path: "Embedded.swift")
        return facts + [
            .buildCommand(
                displayName: "Embedding \(folders.map(\.name).joined(separator: ", ")) into \(target.name)",
                executable: try context.tool(named: "embed-files").url,
                arguments: [output.path()] + folders.map { "\($0.name)=\($0.url.path())" },
                inputFiles: folders.flatMap { files(in: $0.url) },
                outputFiles: [output])
        ]
    }

    private func buildFacts(_ context: PluginContext) throws -> Command {
        let package = context.package.directoryURL
        let output = context.pluginWorkDirectoryURL.appending(path: "BuildFacts.swift")
        // git writes to the log of HEAD with every commit and every change of branch.
        let inputs = [".git/HEAD", ".git/logs/HEAD", ".commit", "Package.resolved"].map { package.appending(path: $0) }
            .filter { FileManager.default.fileExists(atPath: $0.path()) }
        return .buildCommand(
            displayName: "Noting commit and packages", executable: try context.tool(named: "embed-files").url,
            arguments: ["--build-facts", output.path(), package.path()], inputFiles: inputs, outputFiles: [output])
    }

    /// Everything in the folder and below it, the folders too: a file that is added or removed changes its folder.
    private func files(in folder: URL) -> [URL] {
        let paths = FileManager.default.enumerator(atPath: folder.path())?.compactMap { $0 as? String } ?? []
        return paths.sorted().map { folder.appending(path: $0) }
    }
}
