import Dispatch
import Glibc
import Synchronization
import Testing

@testable import NighFiles

/// Tests how a sender waits for a program that writes into a pipe.
@Suite("A watch over a pipe", .timeLimit(.minutes(15))) struct InputWatchTests {
    /// Signals when nothing refers to it any more, which is when a watch is over.
    private final class End: Sendable {
        let semaphore: DispatchSemaphore
        init(_ semaphore: DispatchSemaphore) { self.semaphore = semaphore }
        deinit { semaphore.signal() }
    }

    /// Watches an empty pipe until `finish` ends that. Returns whether the watch has reported something.
    private func watch(_ finish: (InputWatch, _ writer: OpenDescriptor) -> Void) -> Bool {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0)
        let (reader, writer) = (OpenDescriptor(ends[0]), OpenDescriptor(ends[1]))
        let over = DispatchSemaphore(value: 0)
        let reported = Reported()
        let watch: InputWatch
        do {
            let end = End(over)
            watch = InputWatch(AwaitedInput(reader, timeout: nil)) {
                withExtendedLifetime(end) { reported.isTrue.store(true, ordering: .relaxed) }
            }
        }
        finish(watch, writer)
        withExtendedLifetime(watch) { over.wait() }
        return reported.isTrue.load(ordering: .relaxed)
    }

    private final class Reported: Sendable {
        let isTrue = Atomic(false)
    }

    @Test func `A watch reports what comes, and nothing once it is cancelled`() {
        #expect(watch { _, writer in _ = Array("x".utf8).withUnsafeBytes { writer.write($0) } })
        // So it does not end the wait for the next one.
        #expect(!watch { watch, _ in watch.cancel() })
    }
}
