import Glibc
import NighCore
import NighSystem
import ProgramSupport

/// Asks the person at the terminal, one question after the other.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
final class FileQuestions: @unchecked Sendable {
    private let lock = Lock()
    private var queue = QuestionQueue()
    /// The number of the question that the terminal shows.
    private var shown: Int?
    /// Whether the input has ended, which answers every question with no.
    private var hasEnded = false
    private let live: LiveRegion
    private let input: TypedLines
    /// The completions of the questions in the queue, by the number of the question.
    private var answers: [Int: @Sendable (Bool) -> Void] = [:]

    /// Throws if there are no descriptors left.
    init(_ live: LiveRegion) throws {
        self.live = live
        input = try TypedLines()
        try input.start { [weak self] line in self?.typed(line) }
    }

    /// Adds a question to the queue. Calls `answer` on any thread, with false at the end of the input.
    func ask(_ question: QuestionQueue.Question, answer: @escaping @Sendable (Bool) -> Void) {
        let isAsked = lock.withLock {
            guard !hasEnded else { return false }
            answers[question.number] = answer
            queue.add(question)
            show()
            return true
        }
        if !isAsked { answer(false) }
    }

    /// Withdraws a question whose answer nobody needs any more. `proceed` asks the next one, so that the caller can
    /// first report what happened to this one.
    func withdraw(_ number: Int) {
        lock.withLock {
            answers[number] = nil
            guard queue.withdraw(number, at: LoopThread.now), shown == number else { return }
            // The line typed so far was meant for this question.
            tcflush(STDIN_FILENO, TCIFLUSH)
            live.endQuestion(isAnswered: false)
            shown = nil
        }
    }

    /// Asks the next question, if none is being asked.
    func proceed() { lock.withLock { show() } }

    /// Stops reading the input.
    func stop() { input.stop() }

    /// Shows the next question, if none is shown. Must be called with the lock held.
    private func show() {
        guard shown == nil, let next = queue.open else { return }
        live.showQuestion(next.text)
        shown = next.number
    }

    /// - Parameter line: nil at the end of the input.
    private func typed(_ line: String?) {
        guard let line else { return refuseAll() }
        let isYes: Bool? =
            switch line.lowercased() {
            case "y", "yes": true
            case "n", "no": false
            default: nil
            }
        let answer = lock.withLock { () -> (@Sendable (Bool) -> Void)? in
            guard let shown else { return nil }
            live.endQuestion(isAnswered: true)
            self.shown = nil
            defer { show() }
            guard isYes != nil, queue.open?.number == shown else { return nil }
            return queue.takeAnswered(at: LoopThread.now).flatMap { answers.removeValue(forKey: $0.number) }
        }
        if let isYes { answer?(isYes) }
    }

    private func refuseAll() {
        let answers = lock.withLock {
            hasEnded = true
            live.endQuestion(isAnswered: false)
            shown = nil
            queue = QuestionQueue()
            defer { self.answers = [:] }
            return self.answers
        }
        for answer in answers.values { answer(false) }
    }
}
