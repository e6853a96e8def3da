import Testing

@testable import Arguments

@Suite("Reading a command line")
struct ParseTests {
    private func sending(_ line: String) throws -> Sample.Sending {
        guard case .send(_, let sending) = try Sample.request("send \(line)") else {
            throw UsageError("no sending")
        }
        return sending
    }

    /// Returns the request that `scan` makes with this name and these arguments.
    private func scan(
        _ name: String? = nil, nearest: Int = 3, isQuiet: Bool = false, secret: String? = nil
    ) -> Sample.Request {
        let common = Sample.Common(name: name, transport: "tcp", isQuiet: isQuiet, secret: secret)
        return .scan(common, nearest: nearest, within: .seconds(5))
    }

    @Test func `An argument that is left out has its default, or is nil`() throws {
        #expect(try Sample.request("scan") == scan())
        #expect(try Sample.request("offer zsh") == .offer(rate: 64_000, size: nil, shell: .zsh))
    }

    @Test(arguments: ["--name Puma", "--name=Puma", "-n Puma", "-nPuma", "-qnPuma", "-qn Puma", "-q -n Puma"])
    func `A value may follow its option in every usual way`(_ line: String) throws {
        for count in [3, 4] {
            let expected = scan("Puma", nearest: count, isQuiet: line.contains("q"))
            #expect(try Sample.request("scan \(count == 3 ? "" : "4") \(line)") == expected)
        }
    }

    @Test(arguments: [("--name=--quiet", "--quiet"), ("--name=a=b", "a=b"), ("-n=b", "=b"), ("-n-", "-")])
    func `A value that is joined to its option may look like an option`(_ line: String, _ name: String) throws
    {
        #expect(try Sample.request("scan \(line)") == scan(name))
    }

    @Test func `A negative number is an operand or a value, and a hidden option works`() throws {
        #expect(try Sample.request("scan -3") == scan(nearest: -3))
        #expect(try Sample.request("scan --secret x") == scan(secret: "x"))
    }

    @Test
    func `A flag can be negated if it allows that, and a repeated option keeps all its values in order`()
        throws
    {
        #expect(try sending("-l1 a b").isAnimated && sending("-l1 --animation a b").isAnimated)
        #expect(try !sending("-l1 --no-animation a b").isAnimated)
        #expect(try sending("--to a@1 -tb@2 -l1 x --to=c@3 y").to == ["a@1", "b@2", "c@3"])
    }

    @Test(
        "Operands that are required get their words before others; after --, every word is one, and - always is",
        arguments: [
            ("-l1 a b", ["a"], "b"), ("-l1 a b c", ["a", "b"], "c"), ("-l1 - -", ["-"], "-"),
            ("-l1 -- --verbose -- -", ["--verbose", "--"], "-"),
        ])
    func operands(_ line: String, _ files: [String], _ place: String) throws {
        #expect(try sending(line).files == files && sending(line).place == place)
    }

    @Test(
        arguments: [
            ("trust forget", .forget([])), ("trust forget a b", .forget(["a", "b"])),
            ("trust forget -- --help", .forget(["--help"])), ("trust add scan", .trust("scan")),
            ("trust add help", .trust("help")), ("trust add Grüße,猫👋", .trust("Grüße,猫👋")),
        ] as [(String, Sample.Request)])
    func `An operand may be missing, look like an option, have the name of a command, and any characters`(
        _ line: String, _ request: Sample.Request
    ) throws {
        #expect(try Sample.request(line) == request)
    }

    @Test func `A command may have an action and subcommands`() throws {
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

    @Test func `An error of the program's own code is shown in its words, on one line`() {
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
