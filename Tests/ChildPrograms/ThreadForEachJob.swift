import Glibc

/// Runs each job on a new thread, so that no job waits for another. For tests that block while they wait for a program.
package final class ThreadForEachJob: TaskExecutor {
    private static let shared = ThreadForEachJob()

    /// Runs `body` in this way.
    package static func run<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async rethrows -> Result {
        try await withTaskExecutorPreference(shared) { try await body() }
    }

    private struct Turn {
        let job: UnownedJob
        let executor: ThreadForEachJob
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let turn = UnsafeMutablePointer<Turn>.allocate(capacity: 1)
        turn.initialize(to: Turn(job: UnownedJob(job), executor: self))
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let turn = context.assumingMemoryBound(to: Turn.self).move()
                context.deallocate()
                turn.job.runSynchronously(on: turn.executor.asUnownedTaskExecutor())
                return nil
            }, turn)
        precondition(status == 0, "no thread could be made: \(status)")
        pthread_detach(thread)
    }
}
