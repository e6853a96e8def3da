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
        Option(flag: "markdown", "as Markdown, with a heading for each command")
    ) { isMarkdown in
        PrintCommand(commandName: "manual") {
            isMarkdown ? NighProgram.table.markdown : NighProgram.table.manual(section: 1, date: "2026-11-21")
        }
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        // A reader that has gone is no failure, and any other one changes the exit status at the end.
        LineOutput.write(text(), to: STDOUT_FILENO)
        return .success
    }
}
