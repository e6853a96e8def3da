import Glibc

/// Work in a process of its own, so that the memory of one piece of work does not count for the next.
enum SeparateProcess {
    /// Runs `body` in a new process. Returns whether it succeeded.
    ///
    /// - Parameter purpose: what the process is for, if it cannot be started.
    static func run(_ purpose: String, _ body: () -> Bool) -> Bool {
        fflush(nil)
        let child = fork()
        if child == 0 {
            let succeeds = body()
            fflush(nil)
            _exit(succeeds ? 0 : 1)
        }
        var status: Int32 = 0
        guard child > 0, waitpid(child, &status, 0) == child else {
            Soak.complain("soak: could not start a process for \(purpose)")
            return false
        }
        return status == 0
    }
}
