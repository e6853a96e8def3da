import Testing

@testable import NighCore

/// Tasks that wait for a stream.
@Suite("A task that waits for a stream") struct StreamWaitersTests {
    private let pair = StreamPair(StreamTerms(streams: 4, window: 10_000))

    @Test("may be cancelled by another thread while bytes come: neither thread stops")
    func cancelledWhileWoken() async throws {
        let stream = try pair.odd.open("stream")
        let port = stream.port
        for _ in 0..<5_000 {
            let reader = Task { await port.waitForBytes() }
            while !port.hasReader { await Task.yield() }
            async let woken: Void = port.wakeReaders()
            reader.cancel()
            await woken
            await reader.value
        }
        withExtendedLifetime(stream) {}
    }

    @Test("is resumed once, with all others that wait for the same")
    func all() async throws {
        let stream = try pair.odd.open("stream")
        let port = stream.port
        let readers = (0..<3).map { _ in Task { await port.waitForBytes() } }
        let cancelled = Task { await port.waitForBytes() }
        while !port.hasReader { await Task.yield() }
        cancelled.cancel()
        await cancelled.value
        port.receivedFinish()
        for reader in readers { await reader.value }
        #expect(!port.hasReader)
        withExtendedLifetime(stream) {}
    }
}
