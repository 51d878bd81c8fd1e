import Encoding

/// A text of this binary with places `{{name}}`.
struct DevTemplate: Sendable {
    private let text: String

    /// - Parameter file: in the folder `Templates`.
    init(_ file: String) {
        text = Embedded.templates.first { $0.name == file }?.text ?? ""
    }

    /// The text with every place filled. What is filled in is not looked at again.
    func filled(_ values: [String: String] = [:]) -> String {
        var parts = text.split(separator: "{{", omittingEmptySubsequences: false)
        var filled = String(parts.removeFirst())
        for part in parts {
            guard let end = part.firstRange(of: "}}"), let value = values[String(part[..<end.lowerBound])] else {
                filled += "{{" + part
                continue
            }
            filled += value + part[end.upperBound...]
        }
        return filled
    }
}
