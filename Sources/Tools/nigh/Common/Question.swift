import Glibc
import ProgramLife

/// Asks a person something, and waits for the answer on the standard input. Blocks, so never on a loop.
enum Question {
    /// Whether the answer begins with a y; no where nobody is there to answer.
    static func isAgreed(_ question: String, _ results: Results) -> Bool {
        results.live.aside { LineOutput.write("\(LineOutput.harmless(question)) [y/N] ", to: STDERR_FILENO) }
        guard let answer = readLine() else {
            LineOutput.write("\n", to: STDERR_FILENO)
            return false
        }
        return ["y", "yes"].contains(answer.lowercased())
    }
}
