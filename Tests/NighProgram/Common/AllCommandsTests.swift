import ChildPrograms
import NighMemory
import SessionArguments
import Testing

@testable import Arguments
@testable import ProgramSupport
@testable import nigh

/// Tests what holds for every command of `nigh`.
@Suite(.callsPrograms) struct AllCommandsTests {
    private static let commands = NighProgram.table.outline.all.filter { !$0.isHidden }
    private let user = NighUser()

    private static func help(_ path: [String]) throws -> String {
        try NighProgram.table.help(for: path, width: 80)
    }

    @Test func `Help texts are those of the snapshots`() throws {
        let texts = try Self.commands.map {
            ("\($0.path.joined(separator: "-")).txt", try Self.help(Array($0.path.dropFirst())))
        }
        let options = ("options.txt", try Self.help(["options"]))
        #expect(
            try Snapshots.differences(
                of: Dictionary(uniqueKeysWithValues: texts + [options]), from: "NighProgram/Help/Snapshots")
                == [])
    }

    @Test func `The help of each command fits 80 columns, and has examples`() throws {
        #expect(NighProgram.table.problems == [])
        for command in Self.commands {
            let path = Array(command.path.dropFirst())
            let text = try Self.help(path)
            #expect(text.hasPrefix("usage: nigh"), "\(path)")
            #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(path)")
            if command.isComplete, path != ["manual"] { #expect(text.contains("Examples:"), "\(path)") }
            let hasResults = command.isComplete && !["completion", "manual"].contains(path.last ?? "")
            if !path.isEmpty { #expect(text.contains("--json-lines") == hasResults, "\(path)") }
            // No paragraph has a gap where its line ends in the source.
            let prose = command.text.split(separator: "\n").filter { !$0.hasPrefix(" ") }
            #expect(prose.allSatisfy { !$0.contains("  ") }, "\(path)")
        }
    }

    @Test func `The help that explains words of a command has all of them`() throws {
        let errors = try Self.help(["errors"]).split(separator: "\n").joined(separator: " ")
        for cause in ErrorsCommand.causes { #expect(errors.contains("\(cause.label):"), "\(cause.label)") }
        let inject = try Self.help(["inject"])
        for (key, value, _) in FaultPlan.guide { #expect(inject.contains("\n  \(key)=\(value) "), "\(key)") }
        for (command, _) in RelayCommand.guide { #expect(inject.contains("\n  \(command)"), "\(command)") }
    }

    @Test(arguments: ["ping --help", "help ping", "ping -h"])
    func `Help is shown in every way to ask for it, without other work`(_ line: String) throws {
        let help = try Self.help(["ping"]).split(separator: "\n", omittingEmptySubsequences: false)
        let call = try user.run(line)
        #expect(call.lines == help.dropLast().map(String.init) && call.errors.isEmpty)
        #expect(try user.run().lines == user.run("--help").lines)
    }

    @Test func `An unknown option of any command is named, and a misspelt one is suggested`() throws {
        for command in Self.commands {
            let path = Array(command.path.dropFirst())
            for (typed, answer) in [
                ("--no-such", "there is no option --no-such"), ("--hepl", "did you mean --help?"),
            ] {
                let error = #expect(throws: UsageError.self) { try NighProgram.table.parse(path + [typed]) }
                #expect(error?.description.contains(answer) == true, "\(path): \(String(describing: error))")
            }
        }
    }

    @Test func `The manual and the completion scripts name every command`() {
        let table = NighProgram.table
        let texts = [table.manual(date: "2026-02-28")] + [.bash, .zsh, .fish].map(table.completion)
        for command in Self.commands where command.path.count == 2 {
            for text in texts { #expect(text.contains(command.path[1])) }
        }
    }

    @Test func `The version is shown, behind the name of the program`() throws {
        #expect(try user.run("--version").lines == ["nigh \(NighVersion.text)"])
    }

    @Test func `A program without any argument, not even its own name, was started where /proc is missing`() {
        #expect(ProgramArguments.afterName(in: []) == nil)
        #expect(ProgramArguments.afterName(in: ["nigh"]) == [])
        #expect(ProgramArguments.afterName(in: ["nigh", "ping", "Puma"]) == ["ping", "Puma"])
    }

    /// The rest of command lines that are wrong, with semicolons in between, and their words as a shell splits them.
    private static let wrong = [
        "bench": """
        ; a --size 7; a --size 1k,,2k; a --size 17M; a --seconds 0; a --seconds 601; a -d sideways; a --force; \
        a --report /proc/nowhere/a.html; a --report /etc/passwd; a --report /etc --force; a --min-rate x
        """,
        "chat": "a b", "doktor": "; --help", "--nonsense": "", "help": "doktor",
        "conformance": """
        ; pigeon; memory tcp; memory --only nothing; tcp:port=x; memory --pipes 0; memory --ends 1
        """,
        "connect": "puma; puma --port 0; puma --port 22 --json",
        "discover": "No_Service; a b; --timeout soon; --mesh",
        "doctor": """
        -t pigeon; --peer ://nowhere; --timeout soon; --service 'two words'; more; --json --json-lines; \
        --identity ephemeral
        """,
        "expose": "; ssh",
        "forward": "puma; puma x; puma 22:; puma :22; puma 1:2:3; puma 8022:0; puma 70000; puma 8022:ssh",
        "host": "'no service'; a b; a -s b; -t pigeon",
        "inject": """
        delay=1s; --to tcp://127.0.0.1:1; dely=1s --to tcp://127.0.0.1:1; none --to nowhere; \
        none --to tcp://127.0.0.1:1 --listen :; none more --to tcp://127.0.0.1:1
        """,
        "pair": "--identity ephemeral; --security none; Puma Lynx; tcp://",
        "peers": """
        forget; forgte --help; --once; --svg x.svg; --timeout 1s; --force; --map --force; --map --paired; \
        --map --svg /nowhere/x.svg; --map Puma
        """,
        "ping": """
        ; a b; a -c 0; a --size 1025; a --until -c 3; a --max-loss 101%; a --max-loss -1; a -i fast; tcp://
        """,
        "receive": """
        ; --accept some; --into a -o b; -o - --json --accept any; --max-size many; 7-accid-otter-lamp
        """,
        "send": "; puma --give-up 0s; puma a b --as c; puma a -",
        "transfers": "resume; remove",
        "trace": """
        --follow; --pcapng x; file --accept; file --connect Puma; file --type pang; file --direction up; \
        file --pcapng x --peer Puma; file --pcapng x --since 1s; file --pcapng x --hex; --record-bytes 4; \
        file --record x; a b
        """,
        "transports": "-t pigeon; -t tcp:port=x; --json --json-lines; more",
    ]

    @Test func `A wrong command line ends with status 2 and one sentence that points to the help`() throws {
        var parsed = 0
        let lines = Self.wrong.flatMap { command, rest in
            rest.split(separator: ";", omittingEmptySubsequences: false).map { "\(command) \($0)" }
        }
        for line in lines {
            let words = Example(line, "").arguments
            do throws(UsageError) {
                _ = try NighProgram.table.parse(NighProgram.current(words))
            } catch {
                parsed += 1
                #expect(!error.description.contains("\n") && error.description.contains("--help"), "\(line)")
                // One of them shows what the program does with all of them.
                if parsed > 1 { continue }
            }
            let call = try user.start("", words).finish(status: 2)
            #expect(call.errors.count == 1 && call.errors[0].hasPrefix("nigh: "), "\(line): \(call)")
            #expect(call.lines.isEmpty || words.contains("--json"), "\(line): \(call)")
            #expect(call.error.contains("--help"), "\(line): \(call)")
        }
        for (line, words) in [
            ("forward puma x", "LOCALPORT:PORT"), ("discover --mesh", "--mesh needs --through"),
            ("receive 7-accid-otter-lamp", "no word \"accid\" in codes: did you mean acid?"),
        ] {
            try user.fail(line, status: 2, says: words)
        }
    }

    @Test func `Where no transport works, the status is 3, and the reason is reported, with advice`() throws {
        let file = user.folder.file("a", "text")
        let down = "-t bluetooth:adapter=hci60000"
        let lines = [
            "bench Puma \(down)", "chat Puma \(down)", "chat \(down)", "discover --once --timeout 1s \(down)",
            "doctor \(down)", "doctor -t tcp:interface=nowhere0", "host \(down)", "ping Puma \(down)",
            "inject none --to tcp://127.0.0.1:1 --listen tcp:interface=nowhere0",
            "pair --timeout 2s \(down)", "receive --accept any --into \(user.folder.path) \(down)",
            "send puma \(file) \(down)", "trace --identity ephemeral --connect Somebody \(down)",
            "trace --identity ephemeral \(down)", "transports \(down)",
            "conformance bluetooth:adapter=hci60000",
        ]
        let calls = try lines.map { try NighUser().start("\($0) --json", reads: $0.hasPrefix("chat")) }
        for (line, call) in try zip(lines, calls.map { try $0.finish(status: 3) }) {
            let reasons =
                [call.json["error"]["text"]] + call.json["transports"].list.map { $0["error"]["advice"] }
            let checks = call.json["checks"].list.filter { $0["verdict"].string == "fail" }.map {
                $0["advice"]
            }
            #expect((reasons + checks).contains { $0.string != nil }, "\(line): \(call)")
        }
        try user.run(
            "discover chess --once -t tcp:interface=no-such,mdns=off", status: 3, says: "nigh help N11")
    }
}
