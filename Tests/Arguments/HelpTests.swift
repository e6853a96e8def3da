import Testing

@testable import Arguments

@Suite("Help")
struct HelpTests {
    @Test("The program's help lists its commands and the sections for all of them")
    func root() throws {
        #expect(
            try Sample.program.help() == """
                usage: try-it COMMAND ...

                Shows what a table can say.

                Commands:
                  scan           Looks for others
                  send           Sends files to others
                  offer          Offers what there is
                  trust          Knows whom to trust

                Options:
                  -h, --help     shows this help
                      --version  shows the version

                It has it all.

                Exit status:
                  0 when all went well, 2 when the call was wrong.

                Run `try-it help COMMAND` for the help of one command.

                """)
    }

    @Test("A command's help shows every part of it, within the given width")
    func command() throws {
        #expect(
            try Sample.program.help(for: ["send"]) == """
                usage: try-it send [--name NAME] [--transport tcp|bluetooth|memory] [--quiet]
                                   [--[no-]animation] [--verbose] [--to ADDRESS]...
                                   --limit NUMBER FILE... PLACE

                Sends files to others.

                Examples:
                  two files:
                    try-it send --limit 5 a.txt b.txt there

                Operands:
                  FILE                  what to send
                  PLACE                 where it goes

                Options of all that talk:
                  -n, --name NAME       what others see it as
                      --transport tcp|bluetooth|memory
                                        what carries it (default tcp)
                  -q, --quiet           says nothing

                Options:
                      --[no-]animation  shows how it moves (default --animation)
                  -v, --verbose         says more: [all] of it, that's it
                  -t, --to ADDRESS      whom to send it to (may be repeated)
                  -l, --limit NUMBER    how much at once (1 to 100; required)
                  -h, --help            shows this help

                What is sent arrives whole or not at all, and whoever gets it is asked first.
                This text is long enough that it has to be broken into lines wherever they end.

                  as it stands

                The end.

                """)
    }

    @Test(
        "Help can be requested in every usual way",
        arguments: [
            "send --help", "send -h", "help send", "send -qh", "send --wrong --help", "send --name --help",
            "send --help --wrong",
        ])
    func asking(_ line: String) throws {
        let outcome = try Sample.program.parse(line.split(separator: " ").map(String.init))
        #expect(outcome == .text(try Sample.program.help(for: ["send"])))
    }

    @Test(
        "A program or command that does nothing without a subcommand shows its help",
        arguments: ["", "trust"])
    func bare(_ line: String) throws {
        let path = line.split(separator: " ").map(String.init)
        #expect(try Sample.program.parse(path) == .text(try Sample.program.help(for: path)))
    }

    @Test("Without operands, help is also a command; with operands, it is an operand")
    func helpWithoutCommands() throws {
        let plain = Program(Command("plain", "Does it", Option(flag: "now", "at once")) { $0 })
        #expect(try plain.parse(["help"]) == .text(try plain.help()))
        let eager = Program(Command("eager", "Does it", Operand("WORD", .text(), "what")) { $0 })
        #expect(try eager.parse(["help"]) == .action("help"))
        #expect(throws: UsageError.self) { try plain.parse(["--version"]) }
    }

    @Test("Only the program has a version, not its commands")
    func version() throws {
        #expect(try Sample.program.parse(["--version"]) == .text("try-it 0.1\n"))
        #expect(throws: UsageError.self) { try Sample.program.parse(["scan", "--version"]) }
    }

    @Test("No line is wider than the given width", arguments: [40, 50, 79, 80, 100, 200])
    func widths(_ width: Int) throws {
        for command in Sample.program.outline.all {
            let help = try Sample.program.help(for: Array(command.path.dropFirst()), width: width)
            for line in help.split(separator: "\n") where !line.hasPrefix("    try-it") {
                #expect(line.count <= width, "\(line)")
                #expect(line.last != " ")
            }
        }
    }

    @Test("A width that is too small counts as 40", arguments: [-1, 0, 1, 20])
    func noRoom(_ width: Int) throws {
        #expect(try Sample.program.help(width: width) == Sample.program.help(width: 40))
    }

    @Test("Hidden options and commands are not shown")
    func hidden() throws {
        for command in Sample.program.outline.all {
            let help = try Sample.program.help(for: Array(command.path.dropFirst()))
            #expect(!help.contains("--secret"))
            #expect(command.isHidden || !help.contains("nobody knows"))
        }
    }
}
