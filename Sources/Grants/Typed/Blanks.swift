extension Unicode.Scalar {
    /// White space, or a code point that has no appearance, such as a joiner, a mark of direction or a byte order mark.
    var isBlank: Bool { properties.isWhitespace || isInvisible }

    /// A code point that has no appearance.
    var isInvisible: Bool { properties.isDefaultIgnorableCodePoint }
}

extension String {
    /// Without what copying brings around a text. By code point: a `Character` may begin with white space and hold
    /// something else.
    var trimmingBlanks: String {
        var scalars = unicodeScalars[...]
        while scalars.first?.isBlank == true { scalars.removeFirst() }
        while scalars.last?.isBlank == true { scalars.removeLast() }
        return String(Substring(scalars))
    }
}
