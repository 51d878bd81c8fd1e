import Glibc

/// Writes a line to standard output at once, also when that is a pipe; a reader that is gone is no error.
func say(_ text: String, terminator: String = "\n") {
    FileDescriptorOutput.write(text + terminator, to: STDOUT_FILENO)
}
