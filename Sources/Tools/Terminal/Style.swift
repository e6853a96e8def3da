/// How a cell looks.
public struct Style: Hashable, Sendable {
    /// Of the character.
    public var foreground: Colour
    /// Behind it.
    public var background: Colour
    /// What else makes it stand out.
    public var accents: Accents

    /// A style; without arguments, what the terminal writes in by itself.
    public init(_ foreground: Colour = .standard, on background: Colour = .standard, _ accents: Accents = [])
    {
        self.foreground = foreground
        self.background = background
        self.accents = accents
    }

    /// What the terminal writes in by itself.
    public static let plain = Style()
    /// In the terminal's own colours, stronger.
    public static let bold = Style(.standard, .bold)
    /// In the terminal's own colours, weaker.
    public static let dim = Style(.standard, .dim)
    /// In the terminal's own colours, one for the other.
    public static let reverse = Style(.standard, .reverse)

    /// A style in the terminal's own background.
    public init(_ foreground: Colour, _ accents: Accents) {
        self.init(foreground, on: .standard, accents)
    }

    /// What makes a character stand out without colour, so that it does where there is none.
    public struct Accents: OptionSet, Hashable, Sendable {
        /// One bit an accent.
        public let rawValue: UInt8
        /// The accents of these bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Stronger.
        public static let bold = Accents(rawValue: 1)
        /// Weaker.
        public static let dim = Accents(rawValue: 2)
        /// With a line below.
        public static let underline = Accents(rawValue: 4)
        /// Foreground and background changed over.
        public static let reverse = Accents(rawValue: 8)
    }
}
