import Synchronization
import Testing

@testable import NighCore

extension Inbox {
    /// Returns the next element, as a reader of the inbox gets it.
    fileprivate nonisolated(nonsending) func next() async -> Element? {
        while true {
            if let element = poll() { return element }
            guard await wait() else { return nil }
        }
    }
}

@Suite struct InboxTests {
    /// Lets other tasks run until `condition` holds. Gives up at some point instead of hanging.
    private func wait(until condition: () -> Bool) async {
        for _ in 0..<100_000 where !condition() { await Task.yield() }
    }

    @Test func elementsComeOutInOrder() async {
        let inbox = Inbox<Int>()
        #expect(inbox.poll() == nil)
        for number in 0..<100 { inbox.append(number) }
        #expect(inbox.poll() == 0)
        for number in 1..<100 { #expect(await inbox.next() == number) }
        inbox.append(100)
        inbox.finish()
        inbox.append(101)
        #expect(await inbox.next() == 100)
        #expect(await inbox.next() == nil)
        #expect(await inbox.next() == nil)
        #expect(inbox.poll() == nil)
    }

    @Test func aWaitingReaderGetsTheNextElement() async {
        let inbox = Inbox<Int>()
        let reader = Task { await inbox.next() }
        await wait { inbox.hasReader }
        inbox.append(7)
        #expect(await reader.value == 7)
        #expect(inbox.poll() == nil)
    }

    @Test func aReaderDoesNotWaitIfTheConditionHolds() async {
        let inbox = Inbox<Int>()
        #expect(await inbox.wait(unless: { true }))
        #expect(!inbox.hasReader)
        inbox.finish()
        #expect(await inbox.wait(unless: { true }))
        #expect(await !inbox.wait(unless: { false }))
    }

    @Test func finishingEndsTheWait() async {
        let inbox = Inbox<Int>()
        let reader = Task { await inbox.next() }
        await wait { inbox.hasReader }
        inbox.finish()
        #expect(await reader.value == nil)
    }

    @Test func theOldestElementsAreDroppedBeyondTheLimit() {
        let inbox = Inbox<Int>()
        for number in 0..<10 { inbox.append(number, droppingOldestBeyond: 3) }
        #expect(inbox.takeDropped() == 7)
        #expect(inbox.takeDropped() == 0)
        #expect(inbox.poll() == 7)
        inbox.append(10, droppingOldestBeyond: 0)
        #expect(inbox.takeDropped() == 2)
        #expect(inbox.poll() == 10)
        #expect(inbox.poll() == nil)
    }

    @Test func aCancelledReaderGetsNilAndLosesNothing() async {
        let inbox = Inbox<Int>()
        let reader = Task { await inbox.next() }
        await wait { inbox.hasReader }
        reader.cancel()
        #expect(await reader.value == nil)
        #expect(!inbox.hasReader)
        inbox.append(1)
        #expect(await inbox.next() == 1)

        let late = Task { () -> Int? in
            while !Task.isCancelled { await Task.yield() }
            return await inbox.next()
        }
        late.cancel()
        #expect(await late.value == nil)
        #expect(!inbox.hasReader)
    }

    @Test func aCancelledSecondReaderLeavesTheFirstAlone() async {
        let inbox = Inbox<Int>()
        let first = Task { await inbox.next() }
        await wait { inbox.hasReader }

        let second = Task { () -> Int? in
            while !Task.isCancelled { await Task.yield() }
            return await inbox.next()
        }
        second.cancel()
        #expect(await second.value == nil)
        #expect(inbox.hasReader, "a reader that never waited ended another's wait")
        inbox.append(5)
        #expect(await first.value == 5)
    }

    @Test func nothingIsLostBetweenAThreadAndATask() async {
        let inbox = Inbox<Int>()
        let sum = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                for number in 1...20_000 { inbox.append(number) }
                inbox.finish()
                return 0
            }
            group.addTask {
                var last = 0
                var count = 0
                while let number = await inbox.next() {
                    #expect(number == last + 1)
                    last = number
                    count += 1
                }
                return count
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 20_000)
    }
}
