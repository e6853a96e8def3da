import Glibc

/// Runs work on a new thread and waits for it. So the work is on another thread, and still happens at a definite point.
package enum OtherThread {
    private final class WorkBox: @unchecked Sendable {
        // The new thread reads it. The calling thread writes it only before that thread starts and after it has ended.
        var work: () -> Void
        init(_ work: @escaping () -> Void) { self.work = work }
    }

    /// Runs `work` and returns its result.
    package static func run<Result>(_ work: () -> Result) -> Result {
        var result: Result?
        withoutActuallyEscaping({ result = work() }) { work in
            let box = WorkBox(work)
            var thread = pthread_t()
            let status = pthread_create(
                &thread, nil,
                { context in
                    if let context { Unmanaged<WorkBox>.fromOpaque(context).takeUnretainedValue().work() }
                    return nil
                }, Unmanaged.passUnretained(box).toOpaque())
            precondition(status == 0, "a thread could not be created: error \(status)")
            pthread_join(thread, nil)
            box.work = {}
        }
        guard let result else { preconditionFailure("the thread did nothing") }
        return result
    }
}
