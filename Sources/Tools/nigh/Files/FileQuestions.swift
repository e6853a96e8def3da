import Glibc
import NighCore
import ProgramLife

/// Asks the person at the terminal, one question after the other.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
final class FileQuestions: @unchecked Sendable {
    private let lock = Lock()
    private var queue = QuestionQueue()
    /// The number of the question that stands in the terminal.
    private var shown: Int?
    /// Whether nothing more will be typed, which means no.
    private var hasEnded = false
    private let live: LiveRegion
    private let input: TypedLines
    /// By the numbers of the questions in the queue.
    private var answers: [Int: @Sendable (Bool) -> Void] = [:]

    /// Fails where there are no descriptors left.
    init(_ live: LiveRegion) throws {
        self.live = live
        input = try TypedLines()
        try input.start { [weak self] line in self?.typed(line) }
    }

    /// Asks, after those before; `answer` is called on any thread, with no at the end of what is typed.
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

    /// Nobody waits for an answer any more. The next is asked by `proceed`, after what is to be told of this one.
    func withdraw(_ number: Int) {
        lock.withLock {
            answers[number] = nil
            guard queue.withdraw(number, at: LoopThread.now), shown == number else { return }
            // What is typed on the line so far was meant for it.
            tcflush(STDIN_FILENO, TCIFLUSH)
            live.endQuestion(isAnswered: false)
            shown = nil
        }
    }

    /// Asks what is next, where nothing is being asked.
    func proceed() { lock.withLock { show() } }

    /// Reads nothing more.
    func stop() { input.stop() }

    /// With the lock.
    private func show() {
        guard shown == nil, let next = queue.open else { return }
        live.ask(next.words)
        shown = next.number
    }

    /// - Parameter line: nil at the end of what is typed.
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
