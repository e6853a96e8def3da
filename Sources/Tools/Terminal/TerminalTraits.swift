import Glibc

/// The abilities of a terminal, as far as the environment tells them.
public struct TerminalTraits: Hashable, Sendable {
    /// The colours that the terminal shows and its user wants to see.
    public var colours: ColourDepth
    /// Whether the terminal shows more than ASCII.
    public var isUnicode: Bool
    /// Whether the terminal can be written to only line by line, like a printer.
    public var isDumb: Bool

    /// Creates the traits of a terminal.
    public init(colours: ColourDepth, isUnicode: Bool, isDumb: Bool = false) {
        self.colours = colours
        self.isUnicode = isUnicode
        self.isDumb = isDumb
    }

    /// Derives the traits from these variables: `TERM`, `COLORTERM`, `NO_COLOR`, and `LC_ALL`, `LC_CTYPE` or `LANG`.
    public init(environment: [String: String]) {
        let kind = environment["TERM"] ?? ""
        isDumb = kind.isEmpty || kind == "dumb"
        isUnicode = Self.isUnicode(environment)
        let hasColours = environment["NO_COLOR", default: ""].isEmpty && !isDumb
        let colourless = kind.hasPrefix("vt") || kind.hasSuffix("-m") || kind.hasSuffix("-mono")
        if !hasColours || colourless {
            colours = .none
        } else if Self.manyColoured.contains(where: kind.contains)
            || !environment["COLORTERM", default: ""].isEmpty
        {
            colours = .twoHundredFiftySix
        } else {
            colours = .sixteen
        }
    }

    /// The traits of this process's terminal, from its environment. No other thread may change the environment
    /// meanwhile.
    public static var ofThisProcess: TerminalTraits {
        let names = ["TERM", "COLORTERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"]
        var environment: [String: String] = [:]
        for name in names { environment[name] = getenv(name).map { String(cString: $0) } }
        return TerminalTraits(environment: environment)
    }

    private static let manyColoured = [
        "256color", "direct", "kitty", "alacritty", "ghostty", "foot", "wezterm",
    ]

    private static func isUnicode(_ environment: [String: String]) -> Bool {
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let lowered = locale.lowercased()
        return lowered.contains("utf-8") || lowered.contains("utf8")
    }
}

/// Returns whether a descriptor leads to a terminal.
public func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
