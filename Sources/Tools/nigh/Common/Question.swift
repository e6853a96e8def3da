import ProgramSupport

/// Asks a person a question and waits for the answer on the standard input.
enum Question {
    /// Returns whether the answer is "y" or "yes"; nil if the command is interrupted, or the task cancelled, before
    /// there is one. If there is nobody to answer, the answer is no.
    static func isConfirmed(_ question: String, _ results: Results, _ stopRequest: StopRequest) async throws
        -> Bool?
    {
        let (answers, source) = AsyncStream.makeStream(of: String?.self)
        let input = try TypedLines()
        try input.start { source.yield($0) }
        defer { input.stop() }
        stopRequest.onRequest { source.finish() }
        results.live.showQuestion("\(question) [y/N] ")
        var iterator = answers.makeAsyncIterator()
        let answer = await iterator.next()
        results.live.endQuestion(isAnswered: (answer ?? nil) != nil)
        return answer.map { ["y", "yes"].contains($0?.lowercased()) }
    }
}
