import Arguments
import FourInARow
import NighLoop
import NighCore
import NighSystem
import SessionArguments

/// A command line of `fourinarow` after parsing.
enum GameCommand: Sendable {
    /// A person plays, and begins at this place.
    case play(Start, Player, DisplayOptions)
    /// The bot plays.
    case bot(BotOptions, Player)
    /// Prints a completion script for this shell.
    case completion(Shell)
    /// Prints the manual page, or all of it as Markdown.
    case manual(isMarkdown: Bool)

    /// The place where a person begins.
    enum Start: Hashable, Sendable {
        case lobby
        case host
        /// At a table, given by the name or address of its host. Nil means the first suitable table: one with a free
        /// seat, or any table to watch.
        case join(Target?, TableRole)
    }

    /// The table to join.
    enum Target: Hashable, Sendable {
        /// The table of the host with this name, or with a PeerID that begins with it.
        case name(String)
        case address(TransportAddress)

        /// Parses a user's text. Throws for text that can only be meant as an address, but is not one.
        init(_ text: String) throws(UsageError) {
            guard let address = try TransportAddress.typed(text) else {
                self = .name(text)
                return
            }
            self = .address(address)
        }
    }

    /// The player's name, identity and transports.
    struct Player: Sendable {
        /// Nil for the name of the device, or of the bot.
        var name: DisplayName?
        /// Nil for all transports that reach beyond this program.
        var transports: String?
        /// The plugins that add transports.
        var plugins: PluginChoice = .none
        /// Whether guests are let in, over the transport for them.
        var admitsGuests = false
        /// Nil for the user's own identity if a person plays, and for a new one if the bot plays.
        var identity: IdentityChoice?
        /// The file that records the player's links; nil for none.
        var record: RecordChoice?

        /// Returns this player with `admitsGuests` changed.
        func admittingGuests(_ admitsGuests: Bool) -> Player {
            var player = self
            player.admitsGuests = admitsGuests
            return player
        }

        /// Whether the transport within this program was named, alone or among others.
        var namesMemory: Bool {
            let specs = transports.flatMap { try? TransportSpec.list(parsing: $0) } ?? []
            return specs.contains { $0.scheme == "memory" }
        }
    }

    /// The key pair of a player.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
    }

    /// The options of a person's display.
    struct DisplayOptions: Sendable {
        /// Whether the game is shown as lines instead of on a screen.
        var isPlain: Bool
        /// Whether discs are shown as letters instead of drawings.
        var isASCII: Bool
        /// Whether discs are seen falling.
        var animates: Bool
    }

    /// The options of the bot.
    struct BotOptions: Sendable {
        var level: Int
        /// The seed of the bot's random choices.
        var seed: UInt64
        /// The number of games after which the bot leaves; nil if it stays as long as somebody plays.
        var games: Int?
        /// The time that the bot waits before each move, so that people can follow.
        var pause: Duration
        /// The table at which the bot plays; nil for a table of its own.
        var table: Target?
        /// The level of another bot that plays the other side in this program; nil for none.
        var opponentLevel: Int?
        /// Whether the bot only watches until it is offered a seat.
        var watches: Bool
    }
}

extension GameCommand {
    /// The commands, options and operands.
    static let program = Program(
        Command<GameCommand>(
            "fourinarow", "Four in a Row with somebody nearby, over Wi-Fi or Bluetooth",
            text: """
                The board has seven columns of six cells. Two players take turns to drop a disc into a column. The first \
                player with four discs in a row, across, up or diagonally, wins. Without a command, it shows the tables \
                near you. There you can host a table of your own, sit down at one, watch, or play against the machine.

                With --web a phone without the program can play, too. Your table shows a code. Whoever scans it sits \
                down, or watches, in a browser. `nigh guests` lists these guests and sends one away.
                """,
            playerOptions, displayOptions, webOption,
            examples: [
                Example("", "see who plays near you"),
                Example("--transport bluetooth", "over Bluetooth only"),
            ],
            subcommands: [
                Command(
                    "host", "Opens a table of your own", playerOptions, displayOptions, webOption,
                    examples: [
                        Example("--name Puma", "as Puma"), Example("--web", "for somebody with a phone"),
                    ]
                ) { .play(.host, $0.admittingGuests($2), $1) },
                Command(
                    "join", "Sits down at somebody's table", playerOptions, displayOptions, tableOperand,
                    examples: [
                        Example("", "the first table with a free seat"),
                        Example("Puma", "Puma's table"),
                        Example("tcp://192.168.1.7:4000", "the table at this address, without a search"),
                    ]
                ) { .play(.join($2, .seat), $0, $1) },
                Command(
                    "watch", "Watches a game", playerOptions, displayOptions, tableOperand,
                    examples: [Example("Puma", "the game at Puma's table")]
                ) { .play(.join($2, .watch), $0, $1) },
                botCommand,
                Command(
                    "completion", "Prints the completion script for a shell",
                    Operand("SHELL", .choice(of: Shell.self), "the shell")
                ) { .completion($0) },
                Command(
                    "manual", "Prints the manual page, for man -l -",
                    Option(flag: "markdown", "as Markdown, with a heading for each command")
                ) { .manual(isMarkdown: $0) },
            ]
        ) { .play(.lobby, $0.admittingGuests($2), $1) },
        version: NighVersion.text,
        sections: [
            Section(
                "Exit status",
                "0 on success, 1 if something failed, 2 if the command line is wrong, 3 if the system "
                    + "has too few free descriptors or threads."),
            Section(
                "Environment",
                "NO_COLOR, if it is not empty, turns colours off. TERM, COLORTERM, LC_ALL, LC_CTYPE and LANG "
                    + "say what the terminal can show."),
        ])

    private static let botCommand = Command<GameCommand>(
        "bot", "Lets the machine play",
        text: """
            The machine opens a table of its own and plays against anybody who sits down there, or it plays at somebody \
            else's table. It prints a line for each event, and the board at the end of each game.
            """,
        playerOptions,
        Option(
            "level", short: "l", .integer("1..9", in: Bot.levels), default: 5,
            "how well it plays; level 9 makes no mistakes"),
        Option(
            "seed",
            Notation<UInt64>("NUMBER") { text in
                guard let seed = UInt64(text) else { throw UsageError("a seed is a whole number, 0 or more") }
                return seed
            }, "decides the random choices among its moves; by default a random number"),
        Option(
            "games", .integer("NUMBER", in: 1...1_000_000),
            "the number of games after which it leaves; by default no limit"),
        Option(
            "pause", .duration(), default: .milliseconds(300),
            "how long it waits before each move, so that people can follow"),
        Option(
            "at", Notation<Target>("NAME|ADDRESS", write: { "\($0)" }) { try Target($0) },
            "plays at this table instead of its own"),
        Option(
            "against", .integer("1..9", in: Bot.levels),
            "also plays the other side, in this program, at this level"),
        Option(
            flag: "watch",
            "watches at a table instead, and plays on if a player leaves and the seat is offered to it"),
        webOption,
        examples: [
            Example("--level 9", "an opponent to practise with"),
            Example("--at Puma", "plays at Puma's table"),
            Example("--against 3 --games 1 --transport memory", "one game of the machine against itself"),
        ]
    ) { player, level, seed, games, pause, table, opponent, watches, web in
        .bot(
            BotOptions(
                level: level, seed: seed ?? .random(in: .min ... .max), games: games, pause: pause,
                table: table,
                opponentLevel: opponent, watches: watches), player.admittingGuests(web))
    }

    private static let webOption = Option(
        flag: "web",
        "also lets in a phone without the program: shows a code that it scans, and a page in its browser; not encrypted"
    )

    private static let tableOperand = Operand(
        optional: "NAME|ADDRESS", Notation<Target>("NAME|ADDRESS", write: { "\($0)" }) { try Target($0) },
        "the table of this host, or at this address; by default the first that suits")

    private static let playerOptions = OptionGroup(
        "Who plays, and over what",
        Option(
            "name", short: "n", .displayName,
            "the name that others see; by default your name or the device's (bot: Machine)"),
        Option(
            "transport", short: "t", .transports,
            "the transports to use, such as tcp,bluetooth; by default all"),
        Option(
            "identity", .identityFile,
            "the identity file, or ephemeral for a temporary identity; by default your own (bot: a temporary one)"
        ),
        PluginChoice.sessionOptions,
        RecordChoice.options
    ) { name, transports, identity, plugins, record in
        Player(
            name: name, transports: transports, plugins: plugins,
            identity: identity.map { $0.map { .file($0) } ?? .ephemeral }, record: record)
    }

    private static let displayOptions = OptionGroup(
        "How it looks",
        Option(
            flag: "plain",
            "prints a line for each event and reads moves as numbers, for screen readers; always on in pipes"
        ),
        Option(flag: "ascii", "draws with ASCII characters only"),
        Option(switch: "animation", default: true, "whether discs are seen falling")
    ) { DisplayOptions(isPlain: $0, isASCII: $1, animates: $2) }
}
