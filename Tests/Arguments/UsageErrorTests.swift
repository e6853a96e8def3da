import ChildPrograms
import Testing

@testable import Arguments

@Suite("Errors in a command line")
struct UsageErrorTests {
    @Test func `The description of an error is its words`() {
        #expect("\(UsageError("there is no --colour"))" == "there is no --colour")
    }

    @Test func `One sentence names the mistake, the remedy, and the help`() throws {
        let differences = try Snapshots.differences(inTable: "Arguments/usage-errors.txt") { line in
            do {
                return "\(try Sample.request(line.replacing("ESC", with: "\u{1B}"))) is no mistake"
            } catch { return "\(error)" }
        }
        #expect(differences == [])
    }

    @Test func `The exit status of a usage error is 2`() { #expect(UsageError.status == 2) }

    @Test func `A very long argument is shortened in the error`() {
        let error = #expect(throws: UsageError.self) {
            try Sample.program.parse(["scan", String(repeating: "9", count: 10_000)])
        }
        #expect((error?.description.count ?? 0) < 200)
    }
}

@Suite("Tables with contradictions")
struct TableCheckTests {
    @Test func `A correct table has no problems`() { #expect(Sample.program.problems == []) }

    @Test func `Contradictions are reported`() {
        let number = Option("number", short: "h", .integer(in: 1...2), "which")
        let command = Command(
            "Two words", "Ends with a stop.", number, number, Operand(repeated: "A", .text(), "x"),
            Operand(repeated: "A", .choice(["x", ""]), ""), examples: [Example("--number 3", "too many")],
            subcommands: [Command("help", "Helps", subcommands: [])]
        ) { _, _, _, _ in 0 }
        let problems = Program(command).problems
        for words in [
            "two options are --number", "two options are -h", "two operands are A",
            "two operands are repeated", "a choice that cannot be typed",
            "A has no summary", "help is a command by itself", "both operands and subcommands",
            "Two words help: it does nothing",
            "\"Two words\" is not a name", "without a full stop",
            "the example \"Two words --number 3\" is none: --number",
        ] {
            #expect(problems.contains { $0.contains(words) }, "\(words)")
        }
    }

    @Test func `The words of an example are split as a shell splits them`() {
        #expect(Example("a  'b c'd '' --e='f'", "").arguments == ["a", "b cd", "", "--e=f"])
        #expect(Example("", "").arguments == [])
    }
}
