import Arguments
import Glibc
import ProgramLife

/// `nigh completion` and `nigh manual`: print texts that are generated from the table of commands.
struct PrintErrand: Errand {
    let command: String
    let output = OutputOptions()
    let text: @Sendable () -> String

    static let completion = Command<any Errand>(
        "completion", "Prints what a shell needs to complete this command",
        Operand("SHELL", .choice(of: Shell.self), "for which shell"),
        examples: [Example("bash", "for ~/.local/share/bash-completion/completions/nigh")]
    ) { shell in PrintErrand(command: "completion") { NighProgram.table.completion(for: shell) } }

    static let manual = Command<any Errand>("manual", "Prints the manual page, for man -l -") {
        PrintErrand(command: "manual") { NighProgram.table.manual(section: 1, date: "2026-11-21") }
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        LineOutput.write(text(), to: STDOUT_FILENO) ? .well : .failed
    }
}
