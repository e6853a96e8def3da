import Arguments
import ChildPrograms
import NighTestKit

/// A program's table of commands that uses every feature of `Arguments`.
enum Sample {
    enum Request: Hashable, Sendable {
        case scan(Common, nearest: Int, within: Duration)
        case send(Common, Sending)
        case offer(rate: Int, size: Int?, shell: Shell)
        case trust(String)
        case forget([String])
    }

    struct Common: Hashable, Sendable {
        var name: String?
        var transport: String
        var isQuiet: Bool
        var secret: String?

        static let options = OptionGroup(
            "Options of all that talk",
            Option("name", short: "n", .text("NAME"), "what others see it as"),
            Option("transport", .choice(["tcp", "bluetooth", "memory"]), default: "tcp", "what carries it"),
            Option(flag: "quiet", short: "q", "says nothing"),
            Option("secret", .text(), isHidden: true, "nobody is told of it")
        ) { Common(name: $0, transport: $1, isQuiet: $2, secret: $3) }
    }

    struct Sending: Hashable, Sendable {
        var isAnimated: Bool
        var isVerbose: Bool
        var to: [String]
        var limit: Int
        var files: [String]
        var place: String
    }

    /// A type of value that the program parses itself.
    static let address = Notation<String>(
        "ADDRESS", candidates: .lines(of: "printf '%s\\n' 'lynx one' 'puma$(false)'")
    ) {
        guard $0.contains("@") else { throw UsageError("an address is written as in tcp@host") }
        return $0
    }

    static let scan = Command(
        "scan", "Looks for others", Common.options,
        Option(
            "within", .duration(in: .milliseconds(10) ... .seconds(60)), default: .seconds(5), "for how long"),
        Operand(optional: "COUNT", .integer(in: -5...9), default: 3, "how many to show"),
        examples: [Example("", "all"), Example("--name 'The Puma' 4", "four of them")]
    ) { common, within, count in Request.scan(common, nearest: count, within: within) }

    static let send = Command(
        "send", "Sends files to others",
        text: """
            What is sent arrives whole or not at all, and whoever gets it is asked first. This text is long enough that it
            has to be broken into lines wherever they end.

              as it stands

            The end.
            """,
        Common.options,
        Option(switch: "animation", default: true, "shows how it moves"),
        Option(flag: "verbose", short: "v", "says more: [all] of it, that's it"),
        Option(repeated: "to", short: "t", address, "whom to send it to"),
        Option(required: "limit", short: "l", .integer(in: 1...100), "how much at once"),
        Operand(repeated: "FILE", isRequired: true, .file(), "what to send"),
        Operand("PLACE", .directory(), "where it goes"),
        examples: [Example("--limit 5 a.txt b.txt there", "two files")]
    ) { common, isAnimated, isVerbose, to, limit, files, place in
        if common.isQuiet, isVerbose { throw UsageError("--quiet and --verbose contradict each other") }
        return Request.send(
            common,
            Sending(
                isAnimated: isAnimated, isVerbose: isVerbose, to: to, limit: limit, files: files, place: place
            ))
    }

    static let offer = Command(
        "offer", "Offers what there is",
        Option("rate", .rate(in: 8...1_000_000_000), default: 64_000, "how fast"),
        Option("size", .size(in: 1 ... .max), "how much"),
        Operand("SHELL", .choice(of: Shell.self), "for which shell")
    ) { rate, size, shell in Request.offer(rate: rate, size: size, shell: shell) }

    static let trust = Command<Request>(
        "trust", "Knows whom to trust",
        subcommands: [
            Command(
                "add", "Trusts somebody", Operand("PEER", .text(candidates: .lines(of: "echo puma")), "whom")
            ) {
                .trust($0)
            },
            Command("forget", "Trusts somebody no more", Operand(repeated: "PEER", .text(), "whom")) {
                .forget($0)
            },
            Command("hidden", "Does what nobody knows", isHidden: true) { .forget([]) },
        ])

    private static let give = Command<Request>(
        "give", "Gives a file to somebody",
        Operand(
            optional: "PEER", .text(candidates: .linesAndFiles(of: "printf 'puma one\\nlynx\\n'")),
            "one of them"),
        isHidden: true
    ) { _ in .forget([]) }

    static let program = Program(
        Command(
            "try-it", "Shows what a table can say", text: "It has it all.",
            subcommands: [scan, send, offer, trust, give]),
        version: "0.1",
        sections: [Section("Exit status", "0 when all went well, 2 when the call was wrong.")],
        helpTopics: .lines(of: "printf 'chapter\\n'"))

    static func request(_ line: String) throws -> Request {
        let arguments = line.split(separator: " ").map(String.init)
        guard case .action(let request) = try program.parse(arguments) else {
            throw UsageError("it is a text")
        }
        return request
    }
}

/// Runs programs on a script.
struct ShellScript {
    private let folder = TemporaryFolder()
    let path: String

    init(_ script: String) { path = folder.file("script", script) }

    /// Runs a command of a shell, to which `SCRIPT` is the path; returns the lines of both outputs.
    func lines(of command: String) throws -> [String] {
        let command = "exec 2>&1; \(command.replacing("SCRIPT", with: path))"
        return try Child.run("/bin/sh", ["-c", command]).filter { !$0.isEmpty }
    }
}
