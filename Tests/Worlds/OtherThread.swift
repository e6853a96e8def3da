import Glibc
import NighTestKit

/// Runs work on a new thread and waits for it. So the work is on another thread, and still happens at a definite point.
package enum OtherThread {
    private final class WorkBox: @unchecked Sendable {
        // The new thread reads it. The calling thread writes it only before that thread starts and after it has ended.
        var work: () -> Void
        init(_ work: @escaping () -> Void) { self.work = work }
    }

    /// Runs `work` and returns its result.
    ///
    /// The closure is declared as escaping, although it does not escape: the compiler's check of that writes down how
    /// long the path of this file was in the build, and then no two builds are equal.
    package static func run<Result>(_ work: @escaping () -> Result) -> Result {
        var result: Result?
        let box = WorkBox { result = work() }
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
        guard let result else { preconditionFailure("the thread did nothing") }
        return result
    }
}
