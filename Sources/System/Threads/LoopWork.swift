/// One piece of work for an event loop.
///
/// A closure is stored in this enum and not directly in a generic container, because the
/// container would wrap it, which allocates.
package enum LoopWork {
    /// Work from `EventLoop.execute`.
    case closure(@Sendable () -> Void)
    /// The next part of a task that is isolated to an actor of the loop.
    case job(UnownedJob)
    /// The next part of a task that prefers the loop and is isolated to no actor. If it ran as an actor's, every call
    /// of an async function would queue it again.
    case unisolatedJob(UnownedJob)

    /// Runs the work. Called on the loop.
    @inline(__always)
    package func run(on serial: UnownedSerialExecutor, _ tasks: UnownedTaskExecutor) {
        switch self {
        case .closure(let run): run()
        case .job(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: tasks)
        case .unisolatedJob(let job): job.runSynchronously(on: tasks)
        }
    }
}
