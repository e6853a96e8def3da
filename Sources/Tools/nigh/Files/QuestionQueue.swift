import NighCore

/// The questions to ask the person, one after the other, without I/O. Each device has at most one question.
struct QuestionQueue {
    /// A question about one file.
    struct Question: Equatable {
        /// A number that is unique in the program.
        let number: Int
        let text: String
        /// Whether it is about a file of a paired device. Those come before the others.
        let isPaired: Bool
    }

    private var waiting: [Question] = []
    /// When answers count again. An earlier answer may have been typed for a question that was withdrawn.
    private var answerableAt = Moment(nanoseconds: 0)

    /// The time for which the next question takes no answer after the open one was withdrawn.
    static let pause = Moment.Span.seconds(1)

    /// The question that is being asked, or is asked next.
    var open: Question? { waiting.first }

    /// Adds a question behind the others. One about a paired device goes before those about other devices, except the
    /// open one.
    mutating func add(_ question: Question) {
        let place = waiting.dropFirst().firstIndex { question.isPaired && !$0.isPaired }
        waiting.insert(question, at: place ?? waiting.endIndex)
    }

    /// Removes a question whose answer nobody needs any more. Returns whether it was open.
    mutating func withdraw(_ number: Int, at now: Moment) -> Bool {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waiting.remove(at: place)
        if place == 0 { answerableAt = now + Self.pause }
        return place == 0
    }

    /// Removes the open question, which was answered. Returns nil if the answer was not for this question.
    mutating func takeAnswered(at now: Moment) -> Question? {
        guard !waiting.isEmpty, now >= answerableAt else { return nil }
        return waiting.removeFirst()
    }
}
