import CIDN2
import Glibc

/// Domains as people write them.
enum DomainName {
    /// The A-label form (`xn--bcher-kva.example`) of a domain with letters of any script, by UTS 46, not transitional:
    /// what DNS and mail know it by. ASCII is given back as it is.
    /// - Returns: `nil` for what no domain can hold.
    static func ascii(_ typed: some StringProtocol) -> String? {
        guard typed.utf8.contains(where: { $0 >= 0x80 || $0 == 0 }) else { return String(typed) }
        guard !typed.utf8.contains(0) else { return nil }
        var label: UnsafeMutablePointer<CChar>?
        defer { free(label) }
        let flags = CInt(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue | IDN2_USE_STD3_ASCII_RULES.rawValue)
        guard idn2_to_ascii_8z(String(typed), &label, flags) == IDN2_OK.rawValue, let label else { return nil }
        return String(validatingCString: label)
    }
}
