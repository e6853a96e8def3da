import SessionArguments
import Testing

@testable import Arguments
@testable import ProgramSupport
@testable import nigh

/// Tests the help of every command as a user asks for it.
@Suite(.callsPrograms) struct HelpTests {
    private static let commands = NighProgram.table.outline.all.filter { !$0.isHidden }
    private static let withoutResults: Set = ["completion", "manual"]

    @Test("The help of each command explains it and its arguments, with an example")
    func everyCommand() throws {
        let user = NighUser()
        for command in Self.commands {
            let path = Array(command.path.dropFirst())
            let call = try user.run(path + ["--help"])
            #expect(call.status == 0 && call.errors.isEmpty, "\(path): \(call.errors)")
            let text = call.lines.joined(separator: "\n")
            #expect(text.hasPrefix("usage: nigh"), "\(path)")
            #expect(call.lines.allSatisfy { $0.count <= 80 }, "\(path)")
            if command.isComplete, path != ["manual"] {
                #expect(text.contains("Examples:"), "\(path)")
            }
            let hasResults = command.isComplete && !Self.withoutResults.contains(path.last ?? "")
            if !path.isEmpty { #expect(text.contains("--json-lines") == hasResults, "\(path)") }
            if path.count == 1 {
                #expect(try user.run(["help"] + path).lines == call.lines)
            }
        }
    }

    @Test("No paragraph has a gap where its line ends in the source")
    func gaps() {
        for command in Self.commands {
            let lines = command.text.split(separator: "\n").filter { !$0.hasPrefix(" ") }
            #expect(lines.allSatisfy { !$0.contains("  ") }, "\(command.path)")
        }
    }

    @Test("Without a command, the help is shown")
    func bare() throws {
        let user = NighUser()
        let call = try user.run()
        #expect(call.status == 0 && call.errors.isEmpty)
        #expect(try call.lines == user.run("--help").lines)
    }

    @Test(
        "An unknown command gives status 2 and an error that points to the help, also if its help is asked for"
    )
    func noCommand() throws {
        let user = NighUser()
        for arguments in [
            ["doktor"], ["--nonsense"], ["peers", "forget"], ["help", "doktor"], ["doktor", "--help"],
            ["peers", "forgte", "--help"],
        ] {
            let call = try user.run(arguments)
            #expect(call.status == 2 && call.lines.isEmpty, "\(arguments)")
            #expect(
                call.errors.count == 1 && call.errors[0].hasPrefix("nigh: "), "\(arguments): \(call.errors)")
            #expect(call.errors.first?.contains("--help") == true, "\(arguments): \(call.errors)")
        }
    }

    @Test("A program without any argument, not even its own name, was started where /proc is missing")
    func arguments() {
        #expect(ProgramArguments.afterName(in: []) == nil)
        #expect(ProgramArguments.afterName(in: ["nigh"]) == [])
        #expect(ProgramArguments.afterName(in: ["nigh", "ping", "Puma"]) == ["ping", "Puma"])
    }

    @Test("The version is shown, behind the name of the program")
    func version() throws {
        let call = try NighUser().run("--version")
        #expect(call.status == 0 && call.lines == ["nigh \(NighVersion.text)"])
    }

    @Test("The manual and the completion scripts name every command")
    func generated() throws {
        let user = NighUser()
        let texts = try ["manual", "completion bash", "completion zsh", "completion fish"].map { line in
            let call = try user.run(line.split(separator: " ").map(String.init))
            #expect(call.status == 0)
            return call.lines.joined(separator: "\n")
        }
        for command in Self.commands where command.path.count == 2 {
            for text in texts { #expect(text.contains(command.path[1])) }
        }
    }
}
