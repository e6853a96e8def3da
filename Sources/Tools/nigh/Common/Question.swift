/// Asks a person something, and waits for the answer on the standard input. Blocks, so never on a loop.
enum Question {
    /// Whether the answer begins with a y; no where nobody is there to answer.
    static func isAgreed(_ question: String, _ results: Results) -> Bool {
        results.live.ask("\(question) [y/N] ")
        let answer = readLine()
        results.live.endQuestion(isAnswered: answer != nil)
        return ["y", "yes"].contains(answer?.lowercased())
    }
}
