import Testing

@testable import Arguments

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
    @Test("The help of a command shows its own options, and names those of many commands")
    func command() throws {
        #expect(
            try Tool.program.help(for: ["send"]) == """
                usage: tool send [--transport LIST] [--loud] [--wait DURATION] [--[no-]colour]

                Sends.

                Examples:
                  for 5 s:
                    tool send --wait 5
                  b:
                    tool send

                Options:
                      --wait DURATION  the time limit (default 1min)
                      --[no-]colour    in colours (default --colour)
                  -h, --help           shows this help

                Options of many commands (see `tool help options`): --transport, --loud.

                More about it.

                More examples:
                  c:
                    tool send

                """)
    }

    @Test("The program's help has the commands under their headings, and `help options` has all the rest")
    func program() throws {
        let help = try Tool.program.help()
        #expect(help.contains("Files:\n  send") && help.contains("People:\n  look"))
        #expect(help.contains("There are some.") && !help.contains("Goes out."))
        guard case .text(let options) = try Tool.program.parse(["help", "options"]) else { return }
        #expect(options.contains("-t, --transport LIST") && options.contains("Goes out."))
        #expect(!options.contains("--wait"))
    }

    @Test(
        "Earlier names of an option are understood and shown nowhere",
        arguments: ["--give-up 5s", "-g 5s", "--wait 5"])
    func earlierNames(_ option: String) throws {
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

    @Test(
        "A default that fits no command is an error with its place",
        arguments: [
            (Tool.setting("wai", "1", "send"), "tool send has no option \"wai\": did you mean wait?"),
            (Tool.setting("weight", "1"), "no command has an option \"weight\""),
            (Tool.setting("wait", "1", "sent"), "there is no command \"sent\""),
            (Tool.setting("loud", "1"), "loud is yes or no"),
        ])
    func wrongDefaults(_ setting: OptionDefault, _ words: String) {
        let error = #expect(throws: UsageError.self) { try Tool.run("send", [setting]) }
        #expect(
            error?.description.hasPrefix("settings, line 1: \(words)") == true, "\(String(describing: error))"
        )
    }

    @Test("Each command has a manual page of its own, to which that of the program refers")
    func manuals() throws {
        let page = try #require(Tool.program.manual(of: "send", date: "2026-02-28"))
        #expect(page.contains(".TH \"TOOL\\-SEND\"") && page.contains("OPTIONS OF MANY COMMANDS"))
        #expect(Tool.program.manual(of: "walk", date: "2026-02-28") == nil)
        let main = Tool.program.manual(date: "2026-02-28", hasPages: true)
        #expect(main.contains("tool\\-send") && !main.contains("More about it."))
        for text in [page, main] {
            let script = try Script(text)
            let lines = try withExtendedLifetime(script) {
                try Script.lines(of: "groff -man -ww -Tutf8 -P-c \(script.path)")
            }
            #expect(!lines.contains { $0.contains("warning") || $0.contains("error") }, "\(lines)")
        }
    }
}
