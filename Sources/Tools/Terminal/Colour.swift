/// A colour of the terminal: its default, one of the sixteen that users choose for themselves, or a fixed one.
public enum Colour: Hashable, Sendable {
    /// The default colour of the terminal.
    case standard
    /// The sixteen colours, as the user has set them up.
    case black, red, green, yellow, blue, magenta, cyan, white
    case brightBlack, brightRed, brightGreen, brightYellow, brightBlue, brightMagenta, brightCyan, brightWhite
    /// A mix of red, green and blue in six shades each, 0 to 5. Values outside become the nearest shade.
    case mixed(red: Int, green: Int, blue: Int)
    /// One of 24 greys, from nearly black (0) to nearly white (23). Values outside become the nearest grey.
    case grey(Int)

    /// The number by which terminals know the colour; nil for their default.
    var index: UInt8? {
        switch self {
        case .standard: nil
        case .black: 0
        case .red: 1
        case .green: 2
        case .yellow: 3
        case .blue: 4
        case .magenta: 5
        case .cyan: 6
        case .white: 7
        case .brightBlack: 8
        case .brightRed: 9
        case .brightGreen: 10
        case .brightYellow: 11
        case .brightBlue: 12
        case .brightMagenta: 13
        case .brightCyan: 14
        case .brightWhite: 15
        case .mixed(let red, let green, let blue):
            UInt8(16 + 36 * Self.shade(red, 5) + 6 * Self.shade(green, 5) + Self.shade(blue, 5))
        case .grey(let grey): UInt8(232 + Self.shade(grey, 23))
        }
    }

    /// Returns the number of the nearest colour that a terminal of this depth shows.
    func index(in depth: ColourDepth) -> UInt8? {
        guard let index else { return nil }
        switch depth {
        case .none: return nil
        case .sixteen: return index < 16 ? index : Self.nearest(to: index)
        case .twoHundredFiftySix: return index
        }
    }

    private static func shade(_ shade: Int, _ brightest: Int) -> Int { min(max(shade, 0), brightest) }

    private static func nearest(to index: UInt8) -> UInt8 {
        let wanted = shades(of: index)
        return (0..<16).min { distance($0, wanted) < distance($1, wanted) } ?? 7
    }

    private static func distance(_ index: UInt8, _ wanted: (Int, Int, Int)) -> Int {
        let shades = shades(of: index)
        let (red, green, blue) = (shades.0 - wanted.0, shades.1 - wanted.1, shades.2 - wanted.2)
        return red * red + green * green + blue * blue
    }

    /// Returns red, green and blue, 0 to 255 each, as xterm has them.
    private static func shades(of index: UInt8) -> (Int, Int, Int) {
        let index = Int(index)
        if index == 7 { return (229, 229, 229) }
        if index == 8 { return (127, 127, 127) }
        if index < 16 {
            let full = index < 8 ? 205 : 255
            return (index & 1 == 0 ? 0 : full, index & 2 == 0 ? 0 : full, index & 4 == 0 ? 0 : full)
        }
        if index >= 232 {
            let grey = 8 + 10 * (index - 232)
            return (grey, grey, grey)
        }
        let levels = [0, 95, 135, 175, 215, 255]
        let mixed = index - 16
        return (levels[mixed / 36], levels[mixed / 6 % 6], levels[mixed % 6])
    }
}

/// The colours that a terminal has.
public enum ColourDepth: Sendable {
    /// No colours, or none that the user wants to see. Accents stay.
    case none
    /// The sixteen that users choose for themselves.
    case sixteen
    /// All 256: the sixteen and the fixed ones.
    case twoHundredFiftySix
}
