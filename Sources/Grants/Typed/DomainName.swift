import CIDN2
import Glibc

/// Domains as people write them.
enum DomainName {
    /// The A-label form (`xn--bcher-kva.example`) of a domain with letters of any script, by UTS 46, not transitional:
    /// what DNS and mail know it by. ASCII is given back as it is.
    /// - Returns: `nil` for what no domain can hold; the caller still has to look at the ASCII of each label.
    static func ascii(_ typed: some StringProtocol) -> String? {
        guard typed.utf8.contains(where: { $0 >= 0x80 || $0 == 0 }) else { return String(typed) }
        guard !typed.utf8.contains(0) else { return nil }
        var label: UnsafeMutablePointer<CChar>?
        defer { free(label) }
        // Not with IDN2_USE_STD3_ASCII_RULES: the library would drop what no host name holds, and name another domain.
        // Punycode leaves ASCII as it is, so that the caller's look at the A-label finds it.
        let flags = CInt(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue)
        guard idn2_to_ascii_8z(String(typed), &label, flags) == IDN2_OK.rawValue, let label else { return nil }
        return String(validatingCString: label)
    }
}
