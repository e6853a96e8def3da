import FourInARow

/// A line that a person types when the game is shown as lines.
enum PlainCommand: Hashable {
    case drop(Column)
    case rematch
    case resign
    case say(SafeText)
    case board
    case tables
    case yes
    case no
    case join(number: Int)
    case watch(number: Int)
    case host
    case code
    case bot(level: Int)
    case quit
    case help

    /// Why a line is not a command, as a sentence.
    struct ParseError: Error, Hashable { let message: String }

    /// The help, with one line for each command.
    static let overview = [
        "1 to 7: drop a disc into that column, counted from the left",
        "b: print the board again",
        "c WORDS: say something",
        "r: after a game, start another in which you move first",
        "x: resign",
        "y, n: accept or decline a request to play at your table, or a seat that you are offered",
        "l: list the tables near you, with their numbers",
        "j NUMBER: sit down at that table; w NUMBER: watch there",
        "h: open a table of your own",
        "p: print a new code for phones, if the game was started with --web",
        "m, m LEVEL: play against the machine, level 1 to 9; 5 by default",
        "q: leave the table; in the lobby: end the program",
    ]

    /// Parses a line. Returns nil for an empty one.
    init?(_ line: String) throws(ParseError) {
        let line = line.drop { $0 == " " || $0 == "\t" }
        guard let first = line.first else { return nil }
        let rest = line.dropFirst().drop { $0 == " " }
        let argument = String(rest.reversed().drop { $0.isWhitespace }.reversed())
        // A word is not shortened to its first letter: "join" is not "j".
        let standsAlone = line.dropFirst().first.map { $0 == " " || $0 == "\r" } ?? true
        guard standsAlone || first.isNumber else { throw Self.unknown(String(line)) }
        switch (first, argument.isEmpty) {
        case ("1"..."7", true):
            guard let column = first.wholeNumberValue.flatMap({ Column($0 - 1) }) else {
                throw Self.unknown(String(line))
            }
            self = .drop(column)
        case ("b", true): self = .board
        case ("c", false):
            guard let text = SafeText(fitting: argument) else { throw Self.unknown(String(line)) }
            self = .say(text)
        case ("r", true): self = .rematch
        case ("x", true): self = .resign
        case ("y", true): self = .yes
        case ("n", true): self = .no
        case ("l", true): self = .tables
        case ("j", _): self = .join(number: try Self.number(argument, or: 1))
        case ("w", _): self = .watch(number: try Self.number(argument, or: 1))
        case ("h", true): self = .host
        case ("p", true): self = .code
        case ("m", _):
            let level = try Self.number(argument, or: 5)
            guard Bot.levels.contains(level) else {
                throw ParseError(message: "the machine plays at levels 1 to 9")
            }
            self = .bot(level: level)
        case ("q", true): self = .quit
        case ("?", true): self = .help
        default: throw Self.unknown(String(line))
        }
    }

    private static func number(_ text: String, or absent: Int) throws(ParseError) -> Int {
        guard !text.isEmpty else { return absent }
        guard let number = Int(text), number > 0 else {
            throw ParseError(message: "\"\(text)\" is not a number above 0; type ? for the commands")
        }
        return number
    }

    private static func unknown(_ line: String) -> ParseError {
        ParseError(message: "\"\(line)\" is not a valid command; type ? for the commands")
    }
}
