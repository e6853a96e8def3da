import Arguments
import FourInARow
import NighLoop
import NighCore
import SessionArguments

/// What the command line asks `fourinarow` to do.
enum Errand: Sendable {
    /// A person plays, and begins at this place.
    case play(Beginning, Player, Looks)
    /// The bot plays.
    case bot(Machine, Player)
    /// Prints a completion script for this shell.
    case completion(Shell)
    /// Prints the manual page.
    case manual

    /// Where a person begins.
    enum Beginning: Hashable, Sendable {
        case lobby
        case host
        /// At a table, given by the name or address of its host. Nil means the first table that suits: one with a free
        /// seat, or any table to watch.
        case join(Target?, TableWish)
    }

    /// The table that is meant.
    enum Target: Hashable, Sendable {
        /// The table of the host with this name, or with a PeerID that begins with it.
        case name(String)
        case address(TransportAddress)

        init(_ text: String) {
            self = TransportAddress(text).map { .address($0) } ?? .name(text)
        }
    }

    /// Who plays, and over which transports.
    struct Player: Sendable {
        /// Nil for the name of the device, or of the bot.
        var name: DisplayName?
        /// Nil for all transports that reach beyond this program.
        var transports: String?
        /// The plugins that add transports.
        var plugins: PluginChoice = .none
        /// Nil for the user's own identity if a person plays, and for a new one if the bot plays.
        var identity: IdentityChoice?
        /// The file that records what passes on the player's links; nil for none.
        var record: RecordChoice?
    }

    /// The key pair of a player.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
    }

    /// How a person sees the game.
    struct Looks: Sendable {
        /// Whether the game is shown as lines instead of on a screen.
        var isPlain: Bool
        /// Whether discs are shown as letters instead of drawings.
        var isASCII: Bool
        /// Whether discs are seen falling.
        var animates: Bool
    }

    /// How the bot plays.
    struct Machine: Sendable {
        var level: Int
        /// Decides what is left to chance in the bot's moves.
        var seed: UInt64
        /// The number of games after which the bot leaves; nil if it stays as long as somebody plays.
        var games: Int?
        /// The time that the bot waits before each move, so that people can follow.
        var pause: Duration
        /// The table at which the bot plays; nil for a table of its own.
        var table: Target?
        /// The level of another bot that plays the other side in this program; nil for none.
        var opponentLevel: Int?
    }
}

extension Errand {
    /// The commands, options and operands.
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
