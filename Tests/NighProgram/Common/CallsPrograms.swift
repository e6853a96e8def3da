import ChildPrograms
import Glibc
import Testing

/// Marks tests that run programs and block while they wait for them. At most eight run at once, each on threads of its
/// own. On the threads that all tests share, a test that waits for a program would block others, and after a wait it
/// would continue only behind all other work.
struct CallsPrograms: TestTrait, SuiteTrait, TestScoping {
    private static let permits = Permits(8)

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await Self.permits.run {
            try await withTaskExecutorPreference(ThreadForEachJob.shared) { try await function() }
        }
    }
}

extension Trait where Self == CallsPrograms {
    static var callsPrograms: Self { CallsPrograms() }
}

/// Runs each job on a new thread, so that no job waits for another.
private final class ThreadForEachJob: TaskExecutor {
    static let shared = ThreadForEachJob()

    private struct Turn {
        let job: UnownedJob
        let executor: ThreadForEachJob
    }

    func enqueue(_ job: consuming ExecutorJob) {
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
