import NighCore

/// Work that waits inside the system, on a thread of its own.
enum BlockingTask {
    /// Runs `body` on a new thread, which ends with it or with the program.
    static func run(_ body: @escaping @Sendable () -> Void) {
        let thread = LoopThread()
        thread.startOrStopProgram {
            body()
            // Nobody waits for it.
            thread.join()
        }
    }
}
