import Glibc

/// Work on a thread of its own, which a test waits for later.
final class Background {
    private final class WorkBox: @unchecked Sendable {
        // Only the new thread touches it.
        let work: () -> Void
        init(_ work: @escaping () -> Void) { self.work = work }
    }

    private var thread = pthread_t()

    init(_ work: @escaping () -> Void) {
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<WorkBox>.fromOpaque(context).takeRetainedValue().work() }
                return nil
            }, Unmanaged.passRetained(WorkBox(work)).toOpaque())
        precondition(status == 0, "a thread could not be created: error \(status)")
    }

    /// Waits for the end of the work.
    func join() { pthread_join(thread, nil) }
}
