extension String {
    /// The parts of a list that is separated by blanks: `scope`, `prompt`, `acr_values`, `ui_locales`. Empty parts,
    /// which come of two blanks or of one at an end, vanish. Only U+0020 separates (RFC 6749 §3.3).
    package var blankSeparated: [String] { split(separator: " ").map(String.init) }
}
