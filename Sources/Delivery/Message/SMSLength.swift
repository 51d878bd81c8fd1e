import Foundation

/// How many messages a text needs (3GPP TS 23.038 §6.2.1, TS 23.040 §9.2.3.24.1).
enum SMSLength {
    /// 160 characters of GSM-7 or 70 of UCS-2 in one; 153 or 67 in each of several.
    static func segments(_ text: String) -> Int {
        if let septets = septets(text) { return septets <= 160 ? 1 : (septets + 152) / 153 }
        let units = text.utf16.count
        return units <= 70 ? 1 : (units + 66) / 67
    }

    /// Whether every character is in the default alphabet or its extension.
    static func isGSM(_ text: String) -> Bool { septets(text) != nil }

    private static func septets(_ text: String) -> Int? {
        var count = 0
        for scalar in text.unicodeScalars {
            if basic.contains(scalar) {
                count += 1
            } else if extended.contains(scalar) {
                count += 2
            } else {
                return nil
            }
        }
        return count
    }

    /// `text` in the default alphabet as far as it goes: letters lose marks that the alphabet lacks, the rest is left
    /// out.
    static func folded(_ text: String) -> String {
        var folded = String.UnicodeScalarView()
        for character in text {
            if character.unicodeScalars.allSatisfy({ basic.contains($0) || extended.contains($0) }) {
                folded.append(contentsOf: character.unicodeScalars)
            } else if let letter = undecomposed[character] {
                folded.append(letter)
            } else if let base = String(character).decomposedStringWithCanonicalMapping.unicodeScalars.first,
                basic.contains(base)
            {
                folded.append(base)
            }
        }
        return String(folded)
    }

    private static let basic = Set(
        ("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡"
            + "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà").unicodeScalars)
    private static let extended = Set("^{}\\[~]|€".unicodeScalars)
    /// Letters that Unicode does not decompose.
    private static let undecomposed: [Character: Unicode.Scalar] = [
        "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "œ": "o", "–": "-", "’": "'",
    ]
}
