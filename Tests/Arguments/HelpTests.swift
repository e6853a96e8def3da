import ChildPrograms
import Testing

@testable import Arguments

@Suite("Help")
struct HelpTests {
    @Test func `The help of commands, within the given width, is that of the snapshots`() throws {
        let texts = [
            "program.txt": try Sample.program.help(), "send.txt": try Sample.program.help(for: ["send"]),
            "shared.txt": try Tool.program.help(for: ["send"]),
        ]
        #expect(try Snapshots.differences(of: texts, from: "Arguments/Snapshots") == [])
    }

    @Test(arguments: [
        "send --help", "send -h", "help send", "send -qh", "send --wrong --help", "send --name --help",
        "send --help --wrong",
    ])
    func `Help can be requested in every usual way`(_ line: String) throws {
        let outcome = try Sample.program.parse(line.split(separator: " ").map(String.init))
        #expect(outcome == .text(try Sample.program.help(for: ["send"])))
    }

    @Test(arguments: ["", "trust"])
    func `A program or command that does nothing without a subcommand shows its help`(_ line: String) throws {
        let path = line.split(separator: " ").map(String.init)
        #expect(try Sample.program.parse(path) == .text(try Sample.program.help(for: path)))
    }

    @Test func `Without operands, help is also a command; with operands, it is an operand`() throws {
        let plain = Program(Command("plain", "Does it", Option(flag: "now", "at once")) { $0 })
        #expect(try plain.parse(["help"]) == .text(try plain.help()))
        let eager = Program(Command("eager", "Does it", Operand("WORD", .text(), "what")) { $0 })
        #expect(try eager.parse(["help"]) == .action("help"))
        #expect(throws: UsageError.self) { try plain.parse(["--version"]) }
    }

    @Test func `Only the program has a version, not its commands`() throws {
        #expect(try Sample.program.parse(["--version"]) == .text("try-it 0.1\n"))
        #expect(throws: UsageError.self) { try Sample.program.parse(["scan", "--version"]) }
    }

    @Test(arguments: [40, 50, 79, 80, 100, 200]) func `No line is wider than the given width`(_ width: Int)
        throws
    {
        for command in Sample.program.outline.all {
            let help = try Sample.program.help(for: Array(command.path.dropFirst()), width: width)
            for line in help.split(separator: "\n") where !line.hasPrefix("    try-it") {
                #expect(line.count <= width, "\(line)")
                #expect(line.last != " ")
            }
        }
    }

    @Test(arguments: [-1, 0, 1, 20]) func `A width that is too small counts as 40`(_ width: Int) throws {
        #expect(try Sample.program.help(width: width) == Sample.program.help(width: 40))
    }

    @Test func `Hidden options and commands are not shown`() throws {
        for command in Sample.program.outline.all {
            let help = try Sample.program.help(for: Array(command.path.dropFirst()))
            #expect(!help.contains("--secret"))
            #expect(command.isHidden || !help.contains("nobody knows"))
        }
    }
}

/// A program with options that many commands have, commands under headings, and options with earlier names.
private enum Tool {
    static let session = OptionGroup(
        "Session", isShared: true, Option("transport", short: "t", .text("LIST"), "the transports to use"),
        Option(flag: "loud", "says more")
    ) { "\($0 ?? "all")\($1 ? ", loud" : "")" }

    static let program = Program(
        Command(
            "tool", "Does things",
            subcommands: [
                Command(
                    "send", "Sends", text: "More about it.", session,
                    Option("wait", .duration(), default: .seconds(60), "the time limit").formerly(
                        "give-up", "g"),
                    Option(switch: "colour", default: true, "in colours"),
                    examples: [Example("--wait 5", "for 5 s"), Example("", "b"), Example("", "c")]
                ) { "send over \($0) for \($1), \($2 ? "coloured" : "plain")" }.grouped(under: "Files"),
                Command("look", "Looks", session) { "look over \($0)" }.grouped(under: "People"),
            ]),
        sections: [Section("Guides", "There are some."), Section("Output", "Goes out.", isDetail: true)])

    static func run(_ line: String, _ defaults: [OptionDefault] = []) throws -> String {
        let words = line.split(separator: " ").map(String.init)
        guard case .action(let text) = try program.parse(words, defaults: defaults) else { return "" }
        return text
    }

    static func setting(_ option: String, _ value: String, _ command: String? = nil) -> OptionDefault {
        OptionDefault(command: command, option: option, value: value, place: "settings, line 1")
    }
}

@Suite("Options that many commands have") struct SharedOptionsTests {
    @Test("The program's help has the commands under their headings, and `help options` has all the rest")
    func program() throws {
        let help = try Tool.program.help()
        #expect(help.contains("Files:\n  send") && help.contains("People:\n  look"))
        #expect(help.contains("There are some.") && !help.contains("Goes out."))
        guard case .text(let options) = try Tool.program.parse(["help", "options"]) else { return }
        #expect(options.contains("-t, --transport LIST") && options.contains("Goes out."))
        #expect(!options.contains("--wait"))
    }

    @Test(arguments: ["--give-up 5s", "-g 5s", "--wait 5"])
    func `Earlier names of an option are understood and shown nowhere`(_ option: String) throws {
        #expect(try Tool.run("send \(option)") == "send over all for 5.0 seconds, coloured")
        #expect(try !Tool.program.help(for: ["send"]).contains("give-up"))
        #expect(!Tool.program.completion(for: .bash).contains("give-up"))
        #expect(Tool.program.problems == [])
    }

    @Test(
        "A default holds where the command line gives no value, for one command or all that have the option")
    func defaults() throws {
        let all = [
            Tool.setting("transport", "tcp"), Tool.setting("wait", "5", "send"), Tool.setting("colour", "no"),
        ]
        #expect(try Tool.run("send", all) == "send over tcp for 5.0 seconds, plain")
        #expect(try Tool.run("send -t x --wait 1 --colour", all) == "send over x for 1.0 seconds, coloured")
        #expect(try Tool.run("look", all) == "look over tcp")
        #expect(try Tool.run("look", [Tool.setting("loud", "yes")]) == "look over all, loud")
        #expect(
            try Tool.run("send --give-up 1", [Tool.setting("give-up", "7")])
                == "send over all for 1.0 seconds, coloured")
    }

    @Test(arguments: [
        (Tool.setting("wai", "1", "send"), "tool send has no option \"wai\": did you mean wait?"),
        (Tool.setting("weight", "1"), "no command has an option \"weight\""),
        (Tool.setting("wait", "1", "sent"), "there is no command \"sent\""),
        (Tool.setting("loud", "1"), "loud is yes or no"),
    ])
    func `A default that fits no command is an error with its place`(
        _ setting: OptionDefault, _ words: String
    ) {
        let error = #expect(throws: UsageError.self) { try Tool.run("send", [setting]) }
        #expect(
            error?.description.hasPrefix("settings, line 1: \(words)") == true, "\(String(describing: error))"
        )
    }

    @Test func `Each command has a manual page of its own, to which that of the program refers`() throws {
        let page = try #require(Tool.program.manual(of: "send", date: "2026-02-28"))
        #expect(page.contains(".TH \"TOOL\\-SEND\"") && page.contains("OPTIONS OF MANY COMMANDS"))
        #expect(Tool.program.manual(of: "walk", date: "2026-02-28") == nil)
        let main = Tool.program.manual(date: "2026-02-28", hasPages: true)
        #expect(main.contains("tool\\-send") && !main.contains("More about it."))
        for text in [page, main] { _ = try ManualTests.formatted(text) }
    }
}
