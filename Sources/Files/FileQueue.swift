import Dispatch

/// Runs the work of one transfer on a thread of Dispatch, since reading and writing a disk may block.
final class FileQueue: TaskExecutor {
    private let queue = DispatchQueue(label: "files")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Calls `body` after some time.
    func after(_ seconds: Double, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + seconds, execute: body)
    }

    /// Calls `body` from time to time until the timer is cancelled.
    func every(_ seconds: Double, _ body: @escaping @Sendable () -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: body)
        timer.schedule(deadline: .now() + seconds, repeating: seconds)
        timer.activate()
        return timer
    }
}
