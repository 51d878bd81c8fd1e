import Encoding
import Foundation

/// An sRGB colour.
public struct Colour: Sendable, Equatable {
    let red: Double
    let green: Double
    let blue: Double

    /// That of buttons where a realm has none of its own, as in pages.css.
    public static let accent = Colour(red: 31, green: 95, blue: 191)
    /// The card of dark pages, as in pages.css.
    public static let darkCard = Colour(red: 28, green: 33, blue: 40)
    private static let black = Colour(red: 0, green: 0, blue: 0)
    private static let white = Colour(red: 255, green: 255, blue: 255)

    private init(red: Double, green: Double, blue: Double) {
        (self.red, self.green, self.blue) = (red, green, blue)
    }

    /// Reads `#rrggbb`.
    public init?(_ text: String) {
        guard text.utf8.count == 7, text.first == "#", let bytes = Hex.decode(String(text.dropFirst())) else {
            return nil
        }
        self.init(red: Double(bytes[0]), green: Double(bytes[1]), blue: Double(bytes[2]))
    }

    /// `#rrggbb`.
    public var text: String { "#" + Hex.encode([red, green, blue].map { UInt8(max(0, min(255, $0.rounded()))) }) }

    /// Relative luminance (WCAG 2.2).
    private var luminance: Double {
        func linear(_ part: Double) -> Double {
            let part = part / 255
            return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    /// Contrast ratio, 1 to 21 (WCAG 2.2).
    public func contrast(to other: Colour) -> Double {
        let (bright, dim) = (max(luminance, other.luminance), min(luminance, other.luminance))
        return (bright + 0.05) / (dim + 0.05)
    }

    /// Black or white, which of the two is easier to read on it: at least 4.5:1 for any colour.
    public var textColour: Colour {
        contrast(to: Self.white) >= contrast(to: Self.black) ? Self.white : Self.black
    }

    /// The colour, made lighter until it has 4.5:1 against a dark page.
    public func readable(on page: Colour) -> Colour {
        for step in 0...20 {
            let share = Double(step) / 20
            let mixed = Colour(
                red: red + (255 - red) * share, green: green + (255 - green) * share, blue: blue + (255 - blue) * share)
            if mixed.contrast(to: page) >= 4.5 { return mixed }
        }
        return Self.white
    }
}
