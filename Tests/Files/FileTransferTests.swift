import NighCore
import NighSystem
import NighTestKit
import Testing

@testable import NighFiles

/// Tests what a program sees of a transfer while it runs.
@Suite("A transfer, as its program sees it", .timeLimit(.minutes(15))) struct FileTransferTests {
    private let transfer = FileTransfer(
        with: Identity.ephemeral(seed: 1).peerID, of: Identity.ephemeral(seed: 1).peerID, called: "Puma",
        isIncoming: false, items: [], wake: {})
    private let start = LoopThread.now

    /// Notes that this number of bytes has moved, some time after the start.
    private func note(_ count: Int, after time: Duration, isReconnecting: Bool = false) {
        var counts = TransferCount()
        counts.done = count
        transfer.note(counts, isUnderway: true, isReconnecting: isReconnecting, at: start + Moment.Span(time))
    }

    @Test func `While nothing moves, readers see the rate fall until there is none`() async throws {
        var updates = transfer.updates.makeAsyncIterator()
        note(0, after: .zero)
        note(8_000, after: .seconds(1))
        #expect(try await updates.next()?.bytesPerSecond == 8_000)
        var rates: [Double?] = []
        for step in 1...70 {
            note(8_000, after: .seconds(1) + .milliseconds(100) * step)
            // Each look at a new state is one second after the last.
            if step % 10 == 0 { rates.append(try await updates.next()?.bytesPerSecond) }
            if rates.last == .some(nil) { break }
        }
        #expect(rates.first == 4_000 && rates.last == .some(nil))
        #expect(zip(rates, rates.dropFirst()).allSatisfy { $0 ?? 0 > $1 ?? 0 })
    }

    @Test func `What has moved within a tenth of a second is reported after it`() async throws {
        var updates = transfer.updates.makeAsyncIterator()
        note(0, after: .zero)
        note(10, after: .milliseconds(50))
        #expect(try await updates.next()?.done == 0)
        note(10, after: .milliseconds(150))
        #expect(try await updates.next()?.done == 10)
    }

    @Test func `While the link is lost, the progress says so, and has no rate`() async throws {
        var updates = transfer.updates.makeAsyncIterator()
        note(0, after: .zero)
        note(8_000, after: .seconds(1))
        #expect(try await updates.next()?.isReconnecting == false)
        note(8_000, after: .milliseconds(1_001), isReconnecting: true)
        let lost = try await updates.next()
        #expect(lost?.isReconnecting == true && lost?.bytesPerSecond == nil && lost?.timeLeft == nil)
        #expect(lost?.description.hasPrefix("transferring, the link is lost, ") == true)
        note(8_000, after: .milliseconds(1_002))
        #expect(try await updates.next()?.isReconnecting == false)
    }

    @Test func `Waiting for the end fails at once if the task is cancelled`() async throws {
        let waiting = Task { [transfer] () throws(NighError) in try await transfer.finish() }
        waiting.cancel()
        let error = await #expect(throws: NighError.self) { try await waiting.value }
        #expect(error?.cause == .cancelled && !transfer.isAnswered)
        transfer.end(.complete, [])
        try await transfer.finish()
    }
}
