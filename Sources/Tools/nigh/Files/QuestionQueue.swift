import NighCore

/// Whose files the person is to be asked about, one after the other, without any input or output. Each device has one place at most.
struct QuestionQueue {
    /// A question about one file.
    struct Question: Equatable {
        /// Unique in the program.
        let number: Int
        let words: String
        /// Whether it is about a file of a paired device, which is asked about before the others.
        let isPaired: Bool
    }

    private var waiting: [Question] = []
    /// Before, an answer may have been typed for a question that is not there any more.
    private var answerableAt = Moment(nanoseconds: 0)

    /// For how long the next question takes no answer when the one that was open was withdrawn.
    static let pause = Moment.Span.seconds(1)

    /// What is being asked, or to be asked next.
    var open: Question? { waiting.first }

    /// Puts it behind those that are there; of a paired device, before those of others that are not open.
    mutating func add(_ question: Question) {
        let place = waiting.dropFirst().firstIndex { question.isPaired && !$0.isPaired }
        waiting.insert(question, at: place ?? waiting.endIndex)
    }

    /// Takes it away, since nobody waits for its answer any more; whether it was open.
    mutating func withdraw(_ number: Int, at now: Moment) -> Bool {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waiting.remove(at: place)
        if place == 0 { answerableAt = now + Self.pause }
        return place == 0
    }

    /// Takes the open question away, which was answered; nil where the answer was not for it.
    mutating func takeAnswered(at now: Moment) -> Question? {
        guard !waiting.isEmpty, now >= answerableAt else { return nil }
        return waiting.removeFirst()
    }
}
