import Arguments
import Glibc
import ProgramSupport

/// `nigh completion` and `nigh manual`: print texts that are generated from the table of commands.
struct PrintCommand: Subcommand {
    let commandName: String
    let output = OutputOptions()
    let text: @Sendable () -> String

    static let completion = Command<any Subcommand>(
        "completion", "Prints the completion script for a shell",
        Operand("SHELL", .choice(of: Shell.self), "the shell"),
        examples: [Example("bash", "for ~/.local/share/bash-completion/completions/nigh")]
    ) { shell in PrintCommand(commandName: "completion") { NighProgram.table.completion(for: shell) } }

    static let manual = Command<any Subcommand>(
        "manual", "Prints the manual page; read it with man -l -",
        Operand(optional: "COMMAND", .text("COMMAND"), "the command whose page is printed"),
        Option(flag: "list", "lists the commands that have a page of their own"),
        Option(flag: "markdown", "as Markdown, with a heading for each command"),
        examples: [Example("send", "prints the page of `nigh send`")]
    ) { command, isList, isMarkdown in
        let table = NighProgram.table
        let page = command.flatMap { table.manual(of: $0, date: date) }
        if let command, page == nil {
            throw UsageError("there is no command \(command): `nigh manual --list` lists them")
        }
        return PrintCommand(commandName: "manual") {
            if isMarkdown { return table.markdown }
            if isList { return table.commandNames.map { "\($0)\n" }.joined() }
            return page ?? table.manual(date: date, hasPages: true)
        }
    }

    /// The date of the last change of the table.
    private static let date = "2026-11-29"

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        // A reader that has gone is no failure, and any other one changes the exit status at the end.
        LineOutput.write(text(), to: STDOUT_FILENO)
        return .success
    }
}
