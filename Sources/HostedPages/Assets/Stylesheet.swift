import Encoding
import Crypto
import Foundation
import Grants

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

/// An sRGB colour.
struct Colour: Sendable, Equatable {
    let red: Double
    let green: Double
    let blue: Double

    /// The card of dark pages, as in pages.css.
    static let darkCard = Colour(red: 28, green: 33, blue: 40)
    private static let black = Colour(red: 0, green: 0, blue: 0)
    private static let white = Colour(red: 255, green: 255, blue: 255)

    private init(red: Double, green: Double, blue: Double) {
        (self.red, self.green, self.blue) = (red, green, blue)
    }

    /// Reads `#rrggbb`.
    init?(_ text: String) {
        guard text.utf8.count == 7, text.first == "#", let bytes = Hex.decode(String(text.dropFirst())) else {
            return nil
        }
        self.init(red: Double(bytes[0]), green: Double(bytes[1]), blue: Double(bytes[2]))
    }

    /// `#rrggbb`.
    var text: String { "#" + Hex.encode([red, green, blue].map { UInt8(max(0, min(255, $0.rounded()))) }) }

    /// Relative luminance (WCAG 2.2).
    private var luminance: Double {
        func linear(_ part: Double) -> Double {
            let part = part / 255
            return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    /// Contrast ratio, 1 to 21 (WCAG 2.2).
    func contrast(to other: Colour) -> Double {
        let (bright, dim) = (max(luminance, other.luminance), min(luminance, other.luminance))
        return (bright + 0.05) / (dim + 0.05)
    }

    /// Black or white, which of the two is easier to read on it: at least 4.5:1 for any colour.
    var textColour: Colour {
        contrast(to: Self.white) >= contrast(to: Self.black) ? Self.white : Self.black
    }

    /// The colour, made lighter until it has 4.5:1 against a dark page.
    func readable(on page: Colour) -> Colour {
        for step in 0...20 {
            let share = Double(step) / 20
            let mixed = Colour(
                red: red + (255 - red) * share, green: green + (255 - green) * share, blue: blue + (255 - blue) * share)
            if mixed.contrast(to: page) >= 4.5 { return mixed }
        }
        return Self.white
    }
}
