import Glibc

/// Writes a line to standard output at once, also when that is a pipe; a reader that is gone is no error.
func say(_ text: String, terminator: String = "\n") {
    FileDescriptorOutput.write(text.harmless + terminator, to: STDOUT_FILENO)
}

extension String {
    /// The text without what a terminal obeys: what a server sends is printed too, and may be anybody's.
    var harmless: String {
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars where scalar != "\r" {
            let isObeyed = scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
            text.append(isObeyed ? "\u{FFFD}" : scalar)
        }
        return String(text)
    }
}
