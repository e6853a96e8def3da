import NighCore
import Testing

@testable import nigh

/// Tests the order in which `nigh receive` asks its questions, and which answers count.
@Suite struct QuestionQueueTests {
    private func question(_ number: Int, isPaired: Bool = false) -> QuestionQueue.Question {
        .init(number: number, text: "Take \(number)?", isPaired: isPaired)
    }

    private func time(_ milliseconds: Int64) -> Moment { Moment(nanoseconds: milliseconds * 1_000_000) }

    @Test("The questions of senders that leave are removed, however many there were")
    func withdrawn() {
        var queue = QuestionQueue()
        for number in 0..<300 { queue.add(question(number)) }
        queue.add(question(300))
        let wasOpen = (0..<300).map { queue.withdraw($0, at: time(0)) }
        #expect(wasOpen.allSatisfy { $0 } && queue.open == question(300))
        let isStillThere = queue.withdraw(7, at: time(0))
        #expect(!isStillThere)
    }

    @Test(
        "Questions come one after the other, paired devices first, and the open question stays")
    func order() {
        var queue = QuestionQueue()
        for number in 0..<3 { queue.add(question(number)) }
        queue.add(question(10, isPaired: true))
        queue.add(question(11, isPaired: true))
        queue.add(question(3))
        var asked: [Int] = []
        while let next = queue.takeAnswered(at: time(0)) { asked.append(next.number) }
        #expect(asked == [0, 10, 11, 1, 2, 3])
    }

    @Test("An answer to a withdrawn question does not count for the next")
    func lateAnswer() {
        var queue = QuestionQueue()
        for number in 0..<3 { queue.add(question(number)) }
        let wasOpen = queue.withdraw(0, at: time(10_000))
        let early = queue.takeAnswered(at: time(10_999))
        let next = queue.takeAnswered(at: time(11_000))
        #expect(wasOpen && early == nil && next == question(1))
        // Withdrawing a question that was not being asked has no effect on the one that is.
        queue.add(question(4))
        let wasAskedAbout = queue.withdraw(4, at: time(12_000))
        let last = queue.takeAnswered(at: time(12_000))
        #expect(!wasAskedAbout && last == question(2))
    }
}
