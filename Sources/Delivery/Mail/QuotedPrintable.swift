/// The quoted-printable content transfer encoding (RFC 2045 §6.7).
enum QuotedPrintable {
    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    /// `text` as UTF-8 in lines of at most 76 characters that end in CRLF; any of LF, CR and CRLF ends a line.
    ///
    /// The result is 7-bit and has no bare CR or LF, so that no receiver can see another end of data than the sender.
    static func encode(_ text: String) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count * 5 / 4)
        var column = 0
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() {
            if byte == 0x0A || byte == 0x0D {
                let isSecondOfPair = byte == 0x0A && index > 0 && bytes[index - 1] == 0x0D
                if !isSecondOfPair {
                    encoded += [0x0D, 0x0A]
                    column = 0
                }
                continue
            }
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0x0A
            let endsLine = next == 0x0A || next == 0x0D
            let isBlank = byte == 0x20 || byte == 0x09
            let isLiteral = isBlank ? !endsLine : (0x21...0x7E).contains(byte) && byte != 0x3D
            let width = isLiteral ? 1 : 3
            if column + width > (endsLine ? 76 : 75) {
                encoded += [0x3D, 0x0D, 0x0A]
                column = 0
            }
            if isLiteral {
                encoded.append(byte)
            } else {
                encoded += [0x3D, hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 0x0F)]]
            }
            column += width
        }
        if column > 0 { encoded += [0x0D, 0x0A] }
        return encoded
    }
}
