import Foundation

/// Writes a line to standard output at once, also when that is a pipe.
func say(_ text: String, terminator: String = "\n") {
    FileHandle.standardOutput.write(Data((text + terminator).utf8))
}
