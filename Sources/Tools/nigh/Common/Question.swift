/// Asks a person a question and waits for the answer on the standard input. Blocks, so it must not run on a loop.
enum Question {
    /// Returns whether the answer is "y" or "yes"; false if there is nobody to answer.
    static func isConfirmed(_ question: String, _ results: Results) -> Bool {
        results.live.showQuestion("\(question) [y/N] ")
        let answer = readLine()
        results.live.endQuestion(isAnswered: answer != nil)
        return ["y", "yes"].contains(answer?.lowercased())
    }
}
