import Crypto
import Encoding
import Grants
import Texts

/// A style sheet or script under the hash of its content.
struct Asset: Sendable {
    let content: [UInt8]
    /// 32 hexadecimal digits of its SHA-256.
    let name: String

    init(_ text: String) {
        content = Array(text.utf8)
        name = String(Hex.encode(Array(SHA256.hash(data: content))).prefix(32))
    }

    /// A file of the binary.
    init(file: String) {
        self.init(Embedded.templates.first { $0.name == file }?.text ?? "")
    }
}

/// The colours of a brand as a style sheet.
enum BrandStyle {
    /// `nil` for a brand without colours of its own.
    static func asset(_ brand: Brand) -> Asset? {
        guard let light = brand.accent.flatMap(Colour.init) else { return nil }
        let dark = brand.accentDark.flatMap(Colour.init) ?? light.readable(on: Colour.darkCard)
        return Asset(
            ":root{\(variables(light))}\n@media (prefers-color-scheme:dark){:root{\(variables(dark))}}\n")
    }

    private static func variables(_ accent: Colour) -> String {
        "--accent:\(accent.text);--on-accent:\(accent.textColour.text)"
    }
}
