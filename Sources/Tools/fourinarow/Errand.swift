import Arguments
import FourInARow
import Nigh
import NighCore
import SessionArguments

/// What `fourinarow` was asked to do.
enum Errand: Sendable {
    /// A person plays, and begins there.
    case play(Beginning, Player, Looks)
    /// The machine plays.
    case bot(Machine, Player)
    /// Prints a completion script for that shell.
    case completion(Shell)
    /// Prints the manual page.
    case manual

    /// Where a person begins.
    enum Beginning: Hashable, Sendable {
        case lobby
        case host
        /// At a table: whose name or address it is; nil for the first with a free seat.
        case join(Target?, TableWish)
    }

    /// Whose table is meant.
    enum Target: Hashable, Sendable {
        /// Of whoever has this name, or a PeerID that begins like that.
        case name(String)
        case address(TransportAddress)

        init(_ text: String) {
            self = TransportAddress(text).map { .address($0) } ?? .name(text)
        }
    }

    /// Who plays, over what.
    struct Player: Sendable {
        /// Nil for the device's name, or the machine's.
        var name: DisplayName?
        /// Nil for all that reach beyond this program.
        var transports: String?
        /// Where else transports come from.
        var plugins: PluginChoice = .none
        /// Nil for the user's own.
        var identity: IdentityChoice?
        /// Where what passes on its links is written down; nil for nowhere.
        var record: RecordChoice?
    }

    /// Which key pair a player has.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
    }

    /// How a person sees the game.
    struct Looks: Sendable {
        /// Lines instead of a screen.
        var isPlain: Bool
        /// Letters instead of drawn discs.
        var isASCII: Bool
        /// Whether discs fall.
        var animates: Bool
    }

    /// What the machine is to do.
    struct Machine: Sendable {
        var level: Int
        /// Decides what is left to chance in its moves.
        var seed: UInt64
        /// After so many games it leaves; nil for as long as somebody plays.
        var games: Int?
        /// How long it waits before each move, so that people can follow.
        var pause: Duration
        /// Where it plays; nil at a table of its own.
        var table: Target?
        /// Also plays the other side, in this program, at that level.
        var opponentLevel: Int?
    }
}

extension Errand {
    /// The command line.
    static let program = Program(
        Command<Errand>(
            "fourinarow", "Four in a Row with somebody near, over Wi-Fi or Bluetooth",
            text: """
                Seven columns of six cells. You and somebody else take turns to drop a disc into a column; whoever has four in \
                a row first, across, up or diagonally, wins. Without a command it shows the tables near you, where you can host one \
                of your own, sit down at one, watch, or play against the machine.
                """,
            playerOptions, lookOptions,
            examples: [
                Example("", "see who plays near you"),
                Example("--transport bluetooth", "over Bluetooth alone"),
            ],
            subcommands: [
                Command(
                    "host", "Opens a table of your own", playerOptions, lookOptions,
                    examples: [Example("--name Puma", "as Puma")]
                ) { .play(.host, $0, $1) },
                Command(
                    "join", "Sits down at somebody's table", playerOptions, lookOptions, tableOperand,
                    examples: [
                        Example("", "the first table with a free seat"),
                        Example("Puma", "Puma's table"),
                        Example("tcp://192.168.1.7:4000", "the table there, without looking for any"),
                    ]
                ) { .play(.join($2, .seat), $0, $1) },
                Command(
                    "watch", "Watches a game", playerOptions, lookOptions, tableOperand,
                    examples: [Example("Puma", "the game at Puma's table")]
                ) { .play(.join($2, .watch), $0, $1) },
                botCommand,
                Command(
                    "completion", "Prints what a shell needs to complete this command",
                    Operand("SHELL", .choice(of: Shell.self), "for which shell")
                ) { .completion($0) },
                Command("manual", "Prints the manual page, for man -l -") { .manual },
            ]
        ) { .play(.lobby, $0, $1) },
        sections: [
            Section(
                "Exit status",
                "0 when all went well, 1 when something could not be done, 2 when the call was wrong, 3 when the system "
                    + "has too few descriptors or threads for it."),
            Section(
                "Environment",
                "NO_COLOR, when it is not empty, leaves colours out. What the terminal can show is taken from TERM, COLORTERM, LC_ALL, "
                    + "LC_CTYPE and LANG."),
        ])

    private static let botCommand = Command<Errand>(
        "bot", "Has the machine play",
        text: """
            The machine opens a table of its own and plays against whoever sits down there, or plays at somebody else's table. \
            It prints a line for each thing that happens and the board at the end of each game.
            """,
        playerOptions,
        Option(
            "level", short: "l", .integer("1..9", in: Bot.levels), default: 5,
            "how well it plays; 9 makes no mistake"),
        Option(
            "seed",
            Notation<UInt64>("NUMBER") { text in
                guard let seed = UInt64(text) else { throw Misuse("a seed is a whole number from 0 on") }
                return seed
            }, "decides what is left to chance in its moves; drawn without it"),
        Option(
            "games", .integer("NUMBER", in: 1...1_000_000),
            "after how many games it leaves; as long as somebody plays without it"),
        Option(
            "pause", .duration(), default: .milliseconds(300),
            "how long it waits before each move, so that people can follow"),
        Option(
            "at", Notation<Target>("NAME|ADDRESS", write: { "\($0)" }) { Target($0) },
            "at whose table it plays, instead of its own"),
        Option(
            "against", .integer("1..9", in: Bot.levels),
            "has the machine play the other side too, in this program, at that level"),
        examples: [
            Example("--level 9", "somebody to practise with"),
            Example("--at Puma", "plays at Puma's table"),
            Example("--against 3 --games 1 --transport memory", "one game of the machine with itself"),
        ]
    ) { player, level, seed, games, pause, table, opponent in
        .bot(
            Machine(
                level: level, seed: seed ?? .random(in: .min ... .max), games: games, pause: pause,
                table: table,
                opponentLevel: opponent), player)
    }

    private static let tableOperand = Operand(
        optional: "NAME|ADDRESS", Notation<Target>("NAME|ADDRESS", write: { "\($0)" }) { Target($0) },
        "whose table; the first that suits without it")

    private static let playerOptions = OptionGroup(
        "Who plays, and over what",
        Option("name", short: "n", .displayName, "what others see; the device's name without it"),
        Option(
            "transport", short: "t", .transports,
            "what carries the game, as in tcp,bluetooth; all there are without it"),
        Option(
            "identity", .identityFile,
            "who you are to others: a file, or ephemeral for somebody new; your own of this device without it"
        ),
        PluginChoice.sessionOptions,
        RecordChoice.options
    ) { name, transports, identity, plugins, record in
        Player(
            name: name, transports: transports, plugins: plugins,
            identity: identity.map { $0.map { .file($0) } ?? .ephemeral }, record: record)
    }

    private static let lookOptions = OptionGroup(
        "How it looks",
        Option(
            flag: "plain",
            "a line for each thing that happens, and moves typed as numbers: for screen readers, and in pipes by itself"
        ),
        Option(flag: "ascii", "without signs that need Unicode"),
        Option(switch: "animation", default: true, "whether discs are seen to fall")
    ) { Looks(isPlain: $0, isASCII: $1, animates: $2) }
}
