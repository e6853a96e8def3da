import Dispatch
import Synchronization

/// The lines that a person types, without blocking a thread of Swift's concurrency runtime.
public enum StandardInput {
    /// The lines of the standard input without their ends. The sequence ends with the input, or if the task is
    /// cancelled.
    public static var lines: some AsyncSequence<String, Never> & Sendable { Lines() }

    private static let reader = LineReader()

    private struct Lines: AsyncSequence, Sendable {
        func makeAsyncIterator() -> Iterator { Iterator() }

        struct Iterator: AsyncIteratorProtocol {
            mutating func next(isolation actor: isolated (any Actor)?) async -> String? {
                await reader.next()
            }

            mutating func next() async -> String? { await next(isolation: nil) }
        }
    }
}

/// Reads one line at a time, when a task asks for it, on a thread of Dispatch.
private final class LineReader: Sendable {
    private struct State {
        /// A line that was read for a task that was cancelled in the meantime.
        var unread: String?
        var hasEnded = false
        var isReading = false
        var waiting: CheckedContinuation<String?, Never>?
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "standard input")

    nonisolated(nonsending) func next() async -> String? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { wait($0) }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume(returning: nil)
        }
    }

    private func wait(_ continuation: CheckedContinuation<String?, Never>) {
        let (answer, reads) = state.withLock { state -> (String??, Bool) in
            if let line = state.unread.take() { return (.some(line), false) }
            if state.hasEnded || Task.isCancelled || state.waiting != nil { return (.some(nil), false) }
            state.waiting = continuation
            defer { state.isReading = true }
            return (nil, !state.isReading)
        }
        if let answer { continuation.resume(returning: answer) }
        if reads { queue.async { self.read() } }
    }

    private func read() {
        let line = readLine()
        let waiting = state.withLock { state in
            state.isReading = false
            state.hasEnded = line == nil
            let waiting = state.waiting.take()
            if waiting == nil { state.unread = line }
            return waiting
        }
        waiting?.resume(returning: line)
    }
}
