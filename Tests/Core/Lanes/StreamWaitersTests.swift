import NighSystem
import Synchronization
import Testing

@testable import NighCore

@Suite("A task that waits for a stream") struct StreamWaitersTests {
    private let pair = StreamPair()

    /// The rounds in which a thread was asked to wake the readers of a stream, and those in which it has.
    private final class Rounds: Sendable {
        let asked = Atomic<Int>(0)
        let answered = Atomic<Int>(0)
    }

    /// Were the task resumed with the stream's lock held, the two threads would wait for each other in one of the first
    /// hundred rounds or so, and this test would never end.
    @Test func `may be cancelled by another thread while bytes come: neither thread stops`() async throws {
        let port = try pair.odd.open("stream").port
        let (rounds, last) = (Rounds(), 1_000)
        let thread = LoopThread()
        try thread.start {
            for round in 1...last {
                while rounds.asked.load(ordering: .acquiring) < round {}
                for _ in 0..<round % 200 { _ = rounds.asked.load(ordering: .relaxed) }
                port.wakeReaders()
                rounds.answered.store(round, ordering: .releasing)
            }
        }
        for round in 1...last {
            let reader = Task { await port.waitForBytes() }
            while !port.hasReader { await Task.yield() }
            rounds.asked.store(round, ordering: .releasing)
            for _ in 0..<round * 7 % 300 { _ = rounds.answered.load(ordering: .relaxed) }
            reader.cancel()
            while rounds.answered.load(ordering: .acquiring) < round { await Task.yield() }
            await reader.value
        }
        thread.join()
    }

    @Test func `is resumed once, with all others that wait for the same`() async throws {
        let port = try pair.odd.open("stream").port
        let readers = (0..<3).map { _ in Task { await port.waitForBytes() } }
        let cancelled = Task { await port.waitForBytes() }
        while !port.hasReader { await Task.yield() }
        cancelled.cancel()
        await cancelled.value
        port.receivedFinish()
        for reader in readers { await reader.value }
        #expect(!port.hasReader)
    }
}
