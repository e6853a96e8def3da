import Dispatch

/// Runs tasks on a dispatch queue of its own. Without it they would run on the few threads of `DispatchQueue.global()`,
/// which Swift's tasks share with it on Linux, and wait there for programs that block those threads.
package final class QueueExecutor: TaskExecutor {
    private let queue: DispatchQueue

    package init(label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
