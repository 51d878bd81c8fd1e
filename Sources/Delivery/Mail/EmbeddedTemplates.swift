/// The templates of `Sources/Delivery/Templates`, by name without `.mustache`. The build puts the files into the
/// binary.
enum EmbeddedTemplates {
    static let all = Dictionary(
        Embedded.templates.map { file in
            (file.name.hasSuffix(".mustache") ? String(file.name.dropLast(9)) : file.name, file.text)
        },
        uniquingKeysWith: { first, _ in first })
}
