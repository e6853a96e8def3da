import Arguments

// The example in the opening comment of `Program`, word for word: `WorkedExampleTests` compares the two.

enum Request: Sendable {
    case host(Seat, board: Int)
    case join(Seat, table: String?)
}

/// A player: the same options for both commands.
struct Seat: Sendable {
    var name: String?
    var transport: String

    static let options = OptionGroup(
        "Who plays, and over what",
        Option("name", short: "n", .text("NAME"), "what others see you as"),
        Option("transport", .choice(["tcp", "bluetooth", "memory"]), default: "tcp", "what carries the game")
    ) { name, transport in Seat(name: name, transport: transport) }
}

let game = Program(
    Command(
        "connect", "Plays Connect Four with somebody near",
        subcommands: [
            Command(
                "host", "Opens a table", Seat.options,
                Option("columns", .integer(in: 4...20), default: 7, "how wide the board is"),
                examples: [Example("--name Puma --columns 9", "on a wide board")]
            ) { seat, columns in Request.host(seat, board: columns) },
            Command(
                "join", "Sits down at a table", Seat.options,
                Operand(optional: "TABLE", .text(), "whose table; the first one found without it")
            ) { seat, table in Request.join(seat, table: table) },
        ]), version: "1.0")

func answer(_ arguments: [String]) -> String {
    do {
        switch try game.parse(arguments) {
        case .action(.host(let seat, let columns)): return "\(seat.name ?? "?") hosts, \(columns) wide"
        case .action(.join(_, let table)): return "joins \(table ?? "anybody")"
        case .text(let text): return text
        }
    } catch {
        return "connect: \(error)"
    }
}
