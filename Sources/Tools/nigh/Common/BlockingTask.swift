import NighCore

/// Runs work that blocks in system calls on a thread of its own.
enum BlockingTask {
    /// Runs `body` on a new thread. The thread ends when `body` returns, or with the program.
    static func run(_ body: @escaping @Sendable () -> Void) {
        let thread = LoopThread()
        thread.startOrStopProgram {
            body()
            // Nobody else joins the thread, so it detaches itself.
            thread.join()
        }
    }
}
