/// How a cell looks.
public struct Style: Hashable, Sendable {
    /// The colour of the character.
    public var foreground: Colour
    /// The colour behind the character.
    public var background: Colour
    /// Bold, underline and other accents of the cell.
    public var accents: Accents

    /// Creates a style; without arguments, the terminal's default.
    public init(_ foreground: Colour = .standard, on background: Colour = .standard, _ accents: Accents = [])
    {
        self.foreground = foreground
        self.background = background
        self.accents = accents
    }

    /// The terminal's default style.
    public static let plain = Style()
    /// Bold in the terminal's default colours.
    public static let bold = Style(.standard, .bold)
    /// Dim in the terminal's default colours.
    public static let dim = Style(.standard, .dim)
    /// The terminal's default colours, exchanged.
    public static let reverse = Style(.standard, .reverse)

    /// Creates a style with the terminal's default background.
    public init(_ foreground: Colour, _ accents: Accents) {
        self.init(foreground, on: .standard, accents)
    }

    /// Ways to make a character stand out without colour, and so also on terminals without colours.
    public struct Accents: OptionSet, Hashable, Sendable {
        /// One bit for each accent.
        public let rawValue: UInt8
        /// Creates the accents of these bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Bold.
        public static let bold = Accents(rawValue: 1)
        /// Dim.
        public static let dim = Accents(rawValue: 2)
        /// Underlined.
        public static let underline = Accents(rawValue: 4)
        /// With foreground and background exchanged.
        public static let reverse = Accents(rawValue: 8)
    }
}
