import NighCore
import NighSystem

/// Runs work that blocks in system calls on a thread of its own.
enum BlockingTask {
    /// Runs `body` on a new thread, and returns what it returns. The thread ends with it, or with the program.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            let thread = LoopThread()
            thread.startOrStopProgram {
                continuation.resume(returning: body())
                // Nobody else joins the thread, so it detaches itself.
                thread.join()
            }
        }
    }
}
