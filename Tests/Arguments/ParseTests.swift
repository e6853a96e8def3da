import Testing

@testable import Arguments

@Suite("Reading a command line")
struct ParseTests {
    private let common = Sample.Common(name: nil, transport: "tcp", isQuiet: false, secret: nil)

    private func sending(_ line: String) throws -> Sample.Sending {
        guard case .send(_, let sending) = try Sample.request("send \(line)") else {
            throw UsageError("no sending")
        }
        return sending
    }

    @Test("An argument that is left out has its default, or is nil")
    func defaults() throws {
        #expect(try Sample.request("scan") == .scan(common, nearest: 3, within: .seconds(5)))
        #expect(try Sample.request("offer zsh") == .offer(rate: 64_000, size: nil, shell: .zsh))
    }

    @Test(
        "A value may follow its option in every usual way",
        arguments: ["--name Puma", "--name=Puma", "-n Puma", "-nPuma", "-qnPuma", "-qn Puma", "-q -n Puma"])
    func values(_ line: String) throws {
        var expected = common
        expected.name = "Puma"
        expected.isQuiet = line.contains("q")
        #expect(try Sample.request("scan \(line)") == .scan(expected, nearest: 3, within: .seconds(5)))
        #expect(try Sample.request("scan 4 \(line)") == .scan(expected, nearest: 4, within: .seconds(5)))
    }

    @Test("A value that is joined to its option may look like an option")
    func joined() throws {
        for (line, name) in [
            ("--name=--quiet", "--quiet"), ("--name=a=b", "a=b"), ("-n=b", "=b"), ("-n-", "-"),
        ] {
            var expected = common
            expected.name = name
            #expect(try Sample.request("scan \(line)") == .scan(expected, nearest: 3, within: .seconds(5)))
        }
    }

    @Test("A flag can be negated if it allows that")
    func negation() throws {
        #expect(try sending("-l1 a b").isAnimated)
        #expect(try sending("-l1 --animation a b").isAnimated)
        #expect(try !sending("-l1 --no-animation a b").isAnimated)
    }

    @Test("A repeated option keeps all its values in order")
    func repetition() throws {
        #expect(try sending("--to a@1 -tb@2 -l1 x --to=c@3 y").to == ["a@1", "b@2", "c@3"])
    }

    @Test("Operands that are required get their words before others get more")
    func operands() throws {
        #expect(try sending("-l1 a b").files == ["a"])
        #expect(try sending("-l1 a b c").files == ["a", "b"])
        #expect(try sending("-l1 a b c").place == "c")
        #expect(try Sample.request("trust forget") == .forget([]))
        #expect(try Sample.request("trust forget a b") == .forget(["a", "b"]))
    }

    @Test("After --, every word is an operand; a single - always is one")
    func separators() throws {
        #expect(try sending("-l1 -- --verbose -- -").files == ["--verbose", "--"])
        #expect(try sending("-l1 - -").place == "-")
        #expect(try Sample.request("trust forget -- --help") == .forget(["--help"]))
    }

    @Test("A negative number is an operand or a value")
    func negative() throws {
        #expect(try Sample.request("scan -3") == .scan(common, nearest: -3, within: .seconds(5)))
    }

    @Test("A hidden option works")
    func hidden() throws {
        var expected = common
        expected.secret = "x"
        #expect(try Sample.request("scan --secret x") == .scan(expected, nearest: 3, within: .seconds(5)))
    }

    @Test("An operand may have the name of a command if it follows another command")
    func names() throws {
        #expect(try Sample.request("trust add scan") == .trust("scan"))
        #expect(try Sample.request("trust add help") == .trust("help"))
    }

    @Test("Combining characters stay unchanged")
    func text() throws {
        #expect(try Sample.request("trust add Grüße,猫👋") == .trust("Grüße,猫👋"))
    }

    @Test("A command may have an action and subcommands")
    func both() throws {
        let program = Program(
            Command(
                "both", "Does either", Option(flag: "loud", "not quietly"),
                subcommands: [
                    Command("below", "Is below", Option("version", .text(), "of what")) { $0 ?? "below" }
                ]
            ) { $0 ? "LOUD" : "quiet" }, version: "1")
        #expect(program.problems == [])
        #expect(try program.parse([]) == .action("quiet"))
        #expect(try program.parse(["--loud"]) == .action("LOUD"))
        #expect(try program.parse(["below"]) == .action("below"))
        #expect(try program.parse(["below", "--version", "2"]) == .action("2"))
        #expect(try program.parse(["--version"]) == .text("both 1\n"))
        #expect(try program.help().hasPrefix("usage: both [--loud]\n       both COMMAND ...\n"))
        let error = #expect(throws: UsageError.self) { try program.parse(["--loud", "below"]) }
        #expect(error?.description.hasPrefix("below is a command: write it directly after both") == true)
    }

    @Test("An error of the program's own code is shown in its words, on one line")
    func foreignErrors() {
        struct Trouble: Error, CustomStringConvertible { let description = "a\n\u{7}b" }
        let reads = Program(
            Command("reads", "Reads", Option("it", Notation<Int>("IT") { _ in throw Trouble() }, "it")) { $0 }
        )
        let makes = Program<Int>(Command("makes", "Makes") { throw Trouble() })
        let misread = #expect(throws: UsageError.self) { try reads.parse(["--it", "x"]) }
        #expect(misread?.description == "--it: a \u{FFFD}b (see reads --help)")
        let unmade = #expect(throws: UsageError.self) { try makes.parse([]) }
        #expect(unmade?.description == "a \u{FFFD}b (see makes --help)")
    }
}
