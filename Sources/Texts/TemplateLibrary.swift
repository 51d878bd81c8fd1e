import Encoding
import Mustache

/// The one template engine of pages and mails. Templates are part of the binary and parsed once.
public struct TemplateLibrary: Sendable {
    private let library: MustacheLibrary

    /// - Parameter files: templates by file name; `.mustache` at the end is not part of a template's name.
    /// - Throws: a parser error if a template in the binary is broken.
    public init(_ files: [(name: String, text: String)]) throws {
        MustacheContentTypes.register(ScalarHTML(), named: "MARKUP")
        var templates: [String: MustacheTemplate] = [:]
        for file in files where file.name.hasSuffix(Self.suffix) {
            templates[String(file.name.dropLast(Self.suffix.count))] = try MustacheTemplate(string: file.text)
        }
        library = MustacheLibrary(templates: templates)
    }

    private static let suffix = ".mustache"

    /// The template with its values; `nil` when there is no such template.
    public func render(_ name: String, _ values: [String: Any]) -> String? {
        library.render(values, withTemplate: name)
    }
}

/// Escapes each Unicode scalar. The library's own HTML type looks at grapheme clusters, where a quotation mark followed
/// by a combining accent is another character and would be let through.
private struct ScalarHTML: MustacheContentType {
    func escapeText(_ text: String) -> String { HTMLText.escape(text) }
}
